"""Compiles our Java files inside Spark's own JVM, with the compiler that ships with Spark SQL."""

from importlib.resources import files
from typing import Any

from pyspark.sql import SparkSession


def load(spark: SparkSession, name: str) -> Any:
    """Compile `java/NAME.java` and return a new object of that class."""
    context: Any = spark.sparkContext
    jvm, gateway = context._jvm, context._gateway
    source = files(__package__).joinpath("java", f"{name}.java").read_text()
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(source)
    compiled = compiler.getClassLoader().loadClass(f"rheostat.{name}")
    constructor = compiled.getDeclaredConstructor(gateway.new_array(jvm.java.lang.Class, 0))
    return constructor.newInstance(gateway.new_array(jvm.java.lang.Object, 0))
