"""Seeds as written-down hashes; device selection and thread limits.

Nothing here knows of clients or models.
"""
