"""The Kafka topics between the queries of a graph, and the ends of topics that sources read."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from rheostat.engines.spark.driver.error_text import plain
from rheostat.engines.spark.spec import Spec
from rheostat.model.errors import RheostatError, UserError

SETTINGS = "spark.rheostat.kafka."  # such as spark.rheostat.kafka.security.protocol=SASL_SSL
PARTITIONS = {"microbatch": 4, "realtime": 1}  # in Real-Time Mode each partition holds a slot
ANSWER_MS = 20_000
_JSON = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


class QueryTopics:
    """The topics of an application: one for each operator whose rows leave its query."""

    def __init__(self, spark: SparkSession, spec: Spec, partitions: int | None) -> None:
        if not spec.kafka:
            raise UserError(
                "an application that fans out or in needs Kafka between its queries: "
                "start one with `rheostat kafka up` and add --kafka 127.0.0.1:9092"
            )
        self._spark = spark
        self.partitions = partitions or PARTITIONS[spec.mode]
        self._prefix = spec.topic_prefix
        self.parameters = parameters(spec)

    def topic(self, operator: str, reader: str | None = None) -> str:
        """The topic for an operator's rows: one for all readers, or one each if their rows differ."""
        return topic_name(self._prefix, operator, reader)

    def create(self, topics: Iterable[str]) -> None:
        """Create the topics that do not exist yet."""
        with KafkaAdmin(self._spark, self.parameters) as admin:
            admin.create(topics, self.partitions)

    def read(self, topics: Iterable[str], schema: StructType) -> DataFrame:
        """The rows of these topics, as they were written."""
        reader = self._spark.readStream.format("kafka").option("startingOffsets", "earliest")
        for key, value in self.parameters.items():
            reader = reader.option(f"kafka.{key}", value)
        rows = reader.option("subscribe", ",".join(topics)).load()
        row = F.from_json(F.col("value").cast("string"), schema, _JSON)
        return rows.select(row.alias("row")).select("row.*")

    def write(self, rows: DataFrame, routes: Mapping[str, str | None], output_mode: str) -> Any:
        """Send to each topic the rows that meet its condition."""
        check_types(rows.schema)
        value = F.to_json(F.struct(*(rows[name] for name in rows.columns)), _JSON).alias("value")
        where = [
            F.lit(topic) if when is None else F.expr(f"if({when}, '{topic}', null)")
            for topic, when in routes.items()
        ]
        topic = F.explode(F.array_compact(F.array(*where))) if len(routes) > 1 else where[0]
        writer = rows.select(value, topic.alias("topic")).where("topic is not null").writeStream
        writer = writer.format("kafka").outputMode(output_mode)
        for key, setting in self.parameters.items():
            writer = writer.option(f"kafka.{key}", setting)
        return writer


def topic_name(prefix: str, operator: str, reader: str | None = None) -> str:
    """A topic between two queries, named after the operators on both sides.

    >>> topic_name("rheostat.shop.", "split", "count")
    'rheostat.shop.split.to.count'
    """
    name = prefix + operator + (f".to.{reader}" if reader else "")
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name):
        raise UserError(
            f"{name!r} cannot be the name of a Kafka topic: "
            "name the operators of a graph by letters, digits, '.', '_' and '-', at most 249 in all"
        )
    return name


def parameters(spec: Spec) -> dict[str, str]:
    """Kafka's settings for the topics between queries."""
    own = {
        key.removeprefix(SETTINGS): value for key, value in spec.settings.items() if key.startswith(SETTINGS)
    }
    return {"bootstrap.servers": spec.kafka or "", **own}


def check_types(kind: DataType) -> None:
    """Refuse columns that JSON cannot carry."""
    if isinstance(kind, StructType):
        for field in kind.fields:
            check_types(field.dataType)
    elif isinstance(kind, ArrayType):
        check_types(kind.elementType)
    elif isinstance(kind, MapType):
        if not isinstance(kind.keyType, StringType):
            raise UserError("a map that goes from one query to another needs strings as keys")
        check_types(kind.valueType)


class KafkaAdmin:
    """Kafka's admin client, from the connector's own jars, so that it reaches whatever Spark can."""

    def __init__(self, spark: SparkSession, parameters: Mapping[str, str]) -> None:
        context: Any = spark.sparkContext
        self._jvm = context._jvm
        settings = self._jvm.java.util.HashMap()
        limits = {"request.timeout.ms": str(ANSWER_MS), "default.api.timeout.ms": str(ANSWER_MS)}
        for key, value in {**limits, **parameters}.items():
            settings.put(key, value)
        kafka = self._jvm.org.apache.kafka
        try:
            self._client = kafka.clients.admin.AdminClient.create(settings)
        except TypeError:  # a Java package, not a class: the jars are missing
            raise UserError(
                "Spark has no Kafka connector here: add --kafka HOST:PORT to the command"
            ) from None

    def __enter__(self) -> "KafkaAdmin":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def create(self, topics: Iterable[str], partitions: int) -> None:
        """Create topics; one that exists stays as it is."""
        existing = self._client.listTopics().names().get()
        empty = self._jvm.java.util.Optional
        new = self._jvm.java.util.ArrayList()
        for name in topics:
            if not existing.contains(name):
                make = self._jvm.org.apache.kafka.clients.admin.NewTopic
                new.add(make(name, empty.of(partitions), empty.empty()))
        try:
            self._client.createTopics(new).all().get()
        except Exception as error:
            if "TopicExists" not in str(error):
                raise RheostatError(f"Kafka did not create the topics: {plain(error)}") from None

    def partitions(self, topics: Iterable[str]) -> Any:
        """The partitions of these topics, as Kafka's own objects."""
        names = self._jvm.java.util.ArrayList()
        for name in topics:
            names.add(name)
        partitions = self._jvm.java.util.HashMap()
        latest = self._jvm.org.apache.kafka.clients.admin.OffsetSpec.latest()
        described = self._client.describeTopics(names).allTopicNames().get()
        for name in described:
            for part in described[name].partitions():
                partitions.put(
                    self._jvm.org.apache.kafka.common.TopicPartition(name, part.partition()), latest
                )
        return partitions

    def total(self, partitions: Any) -> float:
        """The number of rows ever written to these partitions."""
        ends = self._client.listOffsets(partitions).all().get()
        return float(sum(end.offset() for end in ends.values()))


class TopicEnds:
    """The number of rows ever written to the topics of a query: the log's end, read on each call."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str]) -> None:
        given = {
            key.removeprefix("kafka."): value for key, value in options.items() if key.startswith("kafka.")
        }
        self._admin = KafkaAdmin(spark, given)
        try:
            self._partitions = self._admin.partitions(options["subscribe"].split(","))
        except Exception as error:
            self._admin.close()
            why = plain(error).removeprefix("java.util.concurrent.ExecutionException: ")
            raise UserError(
                f"topic {options['subscribe']} at {given.get('bootstrap.servers')} cannot be read: {why}"
            ) from None

    @staticmethod
    def counter(spark: SparkSession, options: Mapping[str, str]) -> Callable[[], float]:
        """The same total, by a connection that is opened when it is first asked for."""
        opened: list[TopicEnds] = []

        def total() -> float:
            if not opened:
                opened.append(TopicEnds(spark, options))
            return opened[0].total()

        return total

    def __len__(self) -> int:
        """The number of partitions, which is also the number of tasks that read them."""
        return int(self._partitions.size())

    def total(self) -> float:
        """The number of rows so far."""
        return self._admin.total(self._partitions)


def subscription(plan: Any) -> dict[str, str] | None:
    """The options of a plan's Kafka source, if it is the only source and names its topics."""
    leaves = plan.collectLeaves()
    sources = []
    for index in range(leaves.size()):
        leaf = leaves.apply(index)
        if leaf.isStreaming() and str(leaf.sourceName()) == "kafka":
            given = leaf.extraOptions().asCaseSensitiveMap()
            sources.append({str(key): str(given[key]) for key in given})
        elif leaf.isStreaming():
            return None
    return sources[0] if len(sources) == 1 and "subscribe" in sources[0] else None
