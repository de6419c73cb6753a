"""Forty answers as files: what a change of the source that changes no answer leaves byte for
byte."""
