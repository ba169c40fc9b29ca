"""ONNX Runtime's exceptions by their names: PyC's own that are raised in their place."""

from ..errors import CompileFailedError as EPFail
from ..errors import Error as Fail
from ..errors import InvalidArgumentError as InvalidArgument
from ..errors import NotFoundError as NoSuchFile
from ..errors import ParseError as InvalidProtobuf
from ..errors import RuntimeFailedError as RuntimeException
from ..errors import UnsupportedError as NotImplemented
from ..errors import VerifyFailedError as InvalidGraph

__all__ = [
    "EPFail",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "NoSuchFile",
    "NotImplemented",
    "RuntimeException",
]
