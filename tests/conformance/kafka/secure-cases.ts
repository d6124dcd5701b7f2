import assert from "node:assert/strict";
import { decide, readIds, withServer } from "./event-cases.ts";
import type { KafkaCase } from "./kafka-case.ts";
import { readLimit, readMetric, readStore } from "./kafka-fleet.ts";
import { untilInTopic, withFleet } from "./policy-cases.ts";
import type { MutualListener, SecureListener } from "./start-kafka.ts";
import { until } from "./until.ts";

const decisions = 100;

/** What Sluice does with listeners that demand TLS, and SASL or a certificate. */
export const secureCases: readonly KafkaCase[] = [
  ...["plain", "scram-sha-256", "scram-sha-512"].map(
    (mechanism): KafkaCase => ({
      name: `usage events arrive by TLS, with SASL ${mechanism.toUpperCase()}`,
      run: (kafka) =>
        withServer(
          kafka,
          `events.${mechanism}`,
          async (server) => {
            const ids = await decide(server, 0, decisions);
            await until(
              "all events are there",
              async () => (await readIds(kafka, `events.${mechanism}`)).length >= decisions,
            );
            assert.deepEqual((await readIds(kafka, `events.${mechanism}`)).toSorted(), ids.toSorted());
          },
          securely(kafka.secure, mechanism),
        ),
    }),
  ),
  {
    name: "policies travel by TLS, with SASL SCRAM-SHA-512, and a node starts from the topic while the policy store is down",
    run: (kafka) =>
      withFleet(
        kafka,
        "secure",
        async ({ fleet, postgres }) => {
          const first = await fleet.start("first");
          await fleet.putLimit(first, 7);
          await untilInTopic(fleet);
          await postgres.stop("SIGKILL");
          const late = await fleet.start("late");
          assert.deepEqual([await readLimit(late), (await readStore(late)).source], [7, "topic"]);
        },
        securely(kafka.secure, "scram-sha-512"),
      ),
  },
  {
    name: "usage events arrive by TLS that demands a client's certificate",
    run: (kafka) =>
      withServer(
        kafka,
        "events.mutual",
        async (server) => {
          const ids = await decide(server, 0, decisions);
          await until("all events are there", async () => (await readIds(kafka, "events.mutual")).length >= decisions);
          assert.deepEqual((await readIds(kafka, "events.mutual")).toSorted(), ids.toSorted());
        },
        withCertificate(kafka.mutual),
      ),
  },
  {
    name: "policies travel by TLS that demands a client's certificate",
    run: (kafka) =>
      withFleet(
        kafka,
        "mutual",
        async ({ fleet }) => {
          const [one, other] = [await fleet.start("one"), await fleet.start("other")];
          await fleet.putLimit(one, 7);
          await until("the other node has it", async () => (await readLimit(other)) === 7);
          await untilInTopic(fleet);
          assert.equal((await readStore(other)).push.connected, true);
        },
        withCertificate(kafka.mutual),
      ),
  },
  ...(
    [
      ["a wrong password", { SLUICE_KAFKA_PASSWORD: "not-the-password" }],
      ["no SASL", { SLUICE_KAFKA_SASL: "off", SLUICE_KAFKA_USER: "", SLUICE_KAFKA_PASSWORD: "" }],
      ["an authority that it does not know", { SLUICE_KAFKA_CA: "", SLUICE_KAFKA_TLS: "true" }],
      ["no certificate for a listener that demands one", "mutual"],
    ] as const
  ).map(
    ([what, wrong]): KafkaCase => ({
      name: `nothing is sent with ${what}; decisions go on, the events wait, and the log has no password`,
      run: (kafka) =>
        withServer(
          kafka,
          "events.refused",
          async (server) => {
            await decide(server, 0, 10);
            await until("the failure is reported", async () => server.log.includes('"event":"usage_events.failed"'));
            assert.deepEqual(await readIds(kafka, "events.refused"), []);
            assert.equal(await readMetric(server, "sluice_usage_events_waiting\\{.*\\}"), 10);
            for (const secret of [kafka.secure.password, "not-the-password"])
              assert.ok(!server.log.includes(secret), "the log has a password");
          },
          wrong === "mutual"
            ? { SLUICE_KAFKA: kafka.mutual.broker, SLUICE_KAFKA_CA: kafka.mutual.ca }
            : { ...securely(kafka.secure, "scram-sha-256"), ...wrong },
        ),
    }),
  ),
];

function securely({ broker, ca, user, password }: SecureListener, mechanism: string): Readonly<Record<string, string>> {
  return {
    ...{ SLUICE_KAFKA: broker, SLUICE_KAFKA_CA: ca, SLUICE_KAFKA_SASL: mechanism },
    ...{ SLUICE_KAFKA_USER: user, SLUICE_KAFKA_PASSWORD: password },
  };
}

function withCertificate({ broker, ca, cert, key }: MutualListener): Readonly<Record<string, string>> {
  return {
    ...{ SLUICE_KAFKA: broker, SLUICE_KAFKA_CA: ca },
    ...{ SLUICE_KAFKA_CERT: cert, SLUICE_KAFKA_KEY: key },
  };
}
