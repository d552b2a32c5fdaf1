"""Ends a script from another thread: its main thread may be in the middle of a call to Spark."""

import ctypes
import threading


def raise_in_main_thread(kind: type[BaseException]) -> None:
    """Raise an exception where the main thread runs its next line of Python.

    >>> try:
    ...     raise_in_main_thread(SystemExit)
    ...     while True:
    ...         pass
    ... except SystemExit:
    ...     print("ended")
    ended
    """
    main = ctypes.c_ulong(threading.main_thread().ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(main, ctypes.py_object(kind))
