"""Responses of the API, field by field, one file per subject. The texts are those of the OpenAPI document.

Each model reads its fields from attributes of the service's values with the same names, so these models define only the format. Times are
RFC 3339 in UTC; numbers are finite.
"""
