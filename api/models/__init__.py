"""The answers of the API, field by field, one file per subject. The texts are those of the OpenAPI document.

Each model reads its fields from the value of the same name that the service knows, so these models define only the format. Times are RFC
3339 in UTC; numbers are finite.
"""
