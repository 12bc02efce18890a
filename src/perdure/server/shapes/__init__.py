"""Requests and answers as msgspec structs, one file per noun; the OpenAPI file is made from them."""
