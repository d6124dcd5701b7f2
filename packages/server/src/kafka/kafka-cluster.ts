import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { SettingError } from "../settings/parse-settings.ts";
import { readSettingFile } from "../settings/read-setting-file.ts";
import type { Settings } from "../settings/settings.ts";

/** How to connect to a Kafka cluster. It contains secrets, and is not logged. */
export interface KafkaCluster {
  readonly bootstrapBrokers: string[];
  readonly clientId: string;
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  readonly sasl?: {
    readonly mechanism: "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512";
    readonly username: string;
    /** Asked for every connection, so that a password can be exchanged without a restart. */
    readonly password: () => Promise<string>;
  };
}

/** For logs: `kafka-1:9092,kafka-2:9092`. */
export function renderCluster({ bootstrapBrokers }: Pick<KafkaCluster, "bootstrapBrokers">): string {
  return bootstrapBrokers.join(",");
}

/** The cluster that settings name. Throws a `SettingError` if they do not fit together, or a file cannot be used. */
export async function readKafkaCluster(settings: Settings): Promise<KafkaCluster> {
  const { kafka, kafkaClientId } = settings;
  if (kafka === undefined) throw new SettingError(["kafka"], "names no brokers; name one, such as kafka-1:9092");
  const tls = await readTls(settings);
  return {
    bootstrapBrokers: [...kafka],
    clientId: kafkaClientId,
    ...(tls === undefined ? undefined : { tls }),
    ...(await readSasl(settings)),
  };
}

async function readTls(settings: Settings): Promise<KafkaCluster["tls"]> {
  const { kafkaTls, kafkaCa, kafkaCert, kafkaKey } = settings;
  if ((kafkaCert === undefined) !== (kafkaKey === undefined))
    throw new SettingError(
      ["kafkaCert", "kafkaKey"],
      "a certificate needs its key, and a key its certificate; name both",
    );
  if (!kafkaTls && kafkaCa === undefined && kafkaCert === undefined) return undefined;
  const [ca, cert, key] = await Promise.all([
    readSettingFile("kafkaCa", settings),
    readSettingFile("kafkaCert", settings),
    readSettingFile("kafkaKey", settings),
  ]);
  const tls = {
    ...(ca === undefined ? undefined : { ca }),
    ...(cert === undefined ? undefined : { cert }),
    ...(key === undefined ? undefined : { key }),
  };
  try {
    createSecureContext(tls);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new SettingError(
      (["kafkaCa", "kafkaCert", "kafkaKey"] as const).filter((name) => settings[name] !== undefined),
      `the files' contents cannot be used (${said}); they should be in PEM`,
    );
  }
  return tls;
}

async function readSasl(settings: Settings): Promise<Pick<KafkaCluster, "sasl">> {
  const { kafkaSasl, kafkaUser, kafkaPassword, kafkaPasswordFile } = settings;
  const given = (["kafkaUser", "kafkaPassword", "kafkaPasswordFile"] as const).filter(
    (name) => settings[name] !== undefined,
  );
  if (kafkaSasl === "off") {
    if (given.length === 0) return {};
    throw new SettingError(given, "is for SASL, which is off; name a mechanism with SLUICE_KAFKA_SASL (--kafka-sasl)");
  }
  if (kafkaUser === undefined) throw new SettingError(["kafkaUser"], `is missing, and SASL ${kafkaSasl} needs it`);
  if ((kafkaPassword === undefined) === (kafkaPasswordFile === undefined))
    throw new SettingError(["kafkaPassword", "kafkaPasswordFile"], "SASL needs exactly one of them");
  // A file that cannot be read is reported at once, and not by the first connection.
  await readSettingFile("kafkaPasswordFile", settings);
  return {
    sasl: {
      mechanism: mechanisms[kafkaSasl],
      username: kafkaUser,
      password: async () => kafkaPassword ?? (await readFile(kafkaPasswordFile!, "utf8")).trimEnd(),
    },
  };
}

const mechanisms = {
  plain: "PLAIN",
  "scram-sha-256": "SCRAM-SHA-256",
  "scram-sha-512": "SCRAM-SHA-512",
} as const;
