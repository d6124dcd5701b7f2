import { flag, path, type SettingEntry, text, textOr, word } from "./setting-entry.ts";
import { right } from "./setting-readers.ts";

export const saslMechanisms = ["off", "plain", "scram-sha-256", "scram-sha-512"] as const;
export type SaslMechanism = (typeof saslMechanisms)[number];

/** `kafka-1:9092` or `[::1]:9092`. Without a user: SASL has separate settings. */
const broker = /^(\[[\da-fA-F:.]+\]|[\w.-]+):(\d{1,5})$/;
const topicName = { value: "<name>", pattern: /^[\w.-]{1,249}$/, expected: "up to 249 letters, digits or . _ -" };

/** A Kafka cluster, for what is sent to it. */
export class KafkaSettings {
  /** Brokers to start with, `host:port` each. Undefined: there is no cluster. */
  readonly kafka: SettingEntry<readonly string[] | undefined> = {
    flag: "--kafka",
    env: "SLUICE_KAFKA",
    value: "<host:port,…>",
    help: "Kafka brokers to connect to first, comma-separated; needs the package @platformatic/kafka",
    fallback: undefined,
    read: (given) => {
      const brokers = given.split(",").map((one) => one.trim());
      const fits = brokers.every((one) => isPort(Number(broker.exec(one)?.[2])));
      // It may contain a password by mistake, and is not repeated.
      return fits ? right(brokers) : { kind: "wrong", message: "should be host:port, or several separated by commas" };
    },
  };
  readonly kafkaPolicyTopic: SettingEntry<string> = textOr(
    "sluice.policies",
    "--kafka-policy-topic",
    "SLUICE_KAFKA_POLICY_TOPIC",
    "topic that carries policies to nodes, with --push kafka; created, compacted, if it is missing",
    topicName,
  );
  readonly kafkaClientId: SettingEntry<string> = textOr(
    "sluice",
    "--kafka-client-id",
    "SLUICE_KAFKA_CLIENT_ID",
    "name of this client in the brokers' logs, metrics and quotas",
    { value: "<name>", pattern: /^[\w.-]{1,128}$/, expected: "up to 128 letters, digits or . _ -" },
  );
  readonly kafkaTls: SettingEntry<boolean> = flag(
    "--kafka-tls",
    "SLUICE_KAFKA_TLS",
    "connect to Kafka brokers with TLS",
  );
  readonly kafkaCa: SettingEntry<string | undefined> = path(
    "--kafka-ca",
    "SLUICE_KAFKA_CA",
    "CA certificates for verifying Kafka brokers (PEM); turns TLS on",
  );
  readonly kafkaCert: SettingEntry<string | undefined> = path(
    "--kafka-cert",
    "SLUICE_KAFKA_CERT",
    "client certificate for Kafka brokers (PEM); turns TLS on",
  );
  readonly kafkaKey: SettingEntry<string | undefined> = path(
    "--kafka-key",
    "SLUICE_KAFKA_KEY",
    "private key of that certificate (PEM)",
  );
  readonly kafkaSasl: SettingEntry<SaslMechanism> = word(
    "--kafka-sasl",
    "SLUICE_KAFKA_SASL",
    "how to authenticate to Kafka brokers, with the user and password below",
    saslMechanisms,
    "off",
  );
  readonly kafkaUser: SettingEntry<string | undefined> = text("--kafka-user", "SLUICE_KAFKA_USER", "user for SASL", {
    value: "<name>",
  });
  readonly kafkaPassword: SettingEntry<string | undefined> = text(
    undefined,
    "SLUICE_KAFKA_PASSWORD",
    "password for SASL",
    { value: "<password>" },
  );
  readonly kafkaPasswordFile: SettingEntry<string | undefined> = path(
    "--kafka-password-file",
    "SLUICE_KAFKA_PASSWORD_FILE",
    "file with the password for SASL, read again for every connection",
  );
}

function isPort(number: number): boolean {
  return number >= 1 && number <= 65_535;
}
