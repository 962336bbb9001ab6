"""Seeds as documented hashes; device selection and thread limits.

Independent of clients and models.
"""
