"""What others would write: grouped convolutions, a CUDA graph of all steps, fused updates.

It knows one network, `fashion_cnn(norm="none")`, and shares no code with the executors.
"""

import torch
from torch.nn import functional


class GroupedRound:
    """Steps of SGD with momentum for many convolutional networks, recorded as one CUDA graph.

    Args:
        parameters: (problems, parameters) to start from, in the order of the network's tensors.
        inputs: (steps, problems, batch, 1, 28, 28).
        targets: (steps, problems, batch).
        learning_rate: of all.
        momentum: of all.
    """

    def __init__(self, parameters, inputs, targets, learning_rate, momentum):
        shapes = ((16, 1, 5, 5), (16,), (32, 16, 5, 5), (32,), (10, 1568), (10,))
        sizes = [torch.Size(shape).numel() for shape in shapes]
        count = len(parameters)
        self.start = [
            part.reshape(count, *shape).clone()
            for part, shape in zip(parameters.split(sizes, 1), shapes, strict=True)
        ]
        self.weights = [part.clone().requires_grad_() for part in self.start]
        self.velocity = [torch.zeros_like(part) for part in self.start]
        self.inputs = inputs.transpose(1, 2).flatten(2, 3).contiguous()
        self.targets, self.rate, self.momentum = targets, learning_rate, momentum
        self.graph = self._recorded() if parameters.is_cuda else None

    def _recorded(self):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._steps()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._steps()
        return graph

    def _steps(self):
        for images, labels in zip(self.inputs, self.targets, strict=True):
            self._step(images, labels)

    def _step(self, images, labels):
        problems, batch = labels.shape
        first, first_bias, second, second_bias, last, last_bias = self.weights
        values = functional.conv2d(
            images, first.flatten(0, 1), first_bias.flatten(), padding=2, groups=problems
        )
        values = functional.max_pool2d(values.relu(), 2)
        values = functional.conv2d(
            values, second.flatten(0, 1), second_bias.flatten(), padding=2, groups=problems
        )
        values = functional.max_pool2d(values.relu(), 2)
        values = values.reshape(batch, problems, -1).transpose(0, 1)
        outputs = torch.baddbmm(last_bias.unsqueeze(1), values, last.transpose(1, 2))
        loss = functional.cross_entropy(outputs.flatten(0, 1), labels.flatten(), reduction="sum")
        gradients = torch.autograd.grad(loss / batch, self.weights)
        with torch.no_grad():
            torch._foreach_mul_(self.velocity, self.momentum)
            torch._foreach_add_(self.velocity, gradients)
            torch._foreach_add_(self.weights, self.velocity, alpha=-self.rate)

    def run(self):
        """All steps from the start; (problems, parameters) where they end."""
        with torch.no_grad():
            torch._foreach_copy_(self.weights, self.start)
            torch._foreach_zero_(self.velocity)
        if self.graph is None:
            self._steps()
        else:
            self.graph.replay()
        return torch.cat([part.detach().flatten(1) for part in self.weights], 1)
