import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseSettings } from "../settings/parse-settings.ts";
import type { Settings } from "../settings/settings.ts";
import { readKafkaCluster, renderCluster } from "./kafka-cluster.ts";
import { type Kafka, loadKafka } from "./load-kafka.ts";
import { hasKafkaCode, isUnknownTopic, renderKafkaError } from "./render-kafka-error.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-kafka-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function settingsWith(env: Record<string, string>): Settings {
  const reading = parseSettings({ SLUICE_KAFKA: "a:9092, [::1]:9093", ...env });
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  return reading.settings;
}

describe("a Kafka cluster in settings", () => {
  it("is plain if nothing else is said", async () => {
    const cluster = await readKafkaCluster(settingsWith({}));
    expect(cluster).toEqual({ bootstrapBrokers: ["a:9092", "[::1]:9093"], clientId: "sluice" });
    expect(renderCluster(cluster)).toBe("a:9092,[::1]:9093");
  });

  it("has TLS with the machine's own CAs, or those of a file", async () => {
    expect(await readKafkaCluster(settingsWith({ SLUICE_KAFKA_TLS: "true" }))).toMatchObject({ tls: {} });
    const file = join(folder, "ca.pem");
    await writeFile(file, "not PEM, but Node's TLS ignores that");
    expect(await readKafkaCluster(settingsWith({ SLUICE_KAFKA_CA: file }))).toMatchObject({
      tls: { ca: expect.stringContaining("not PEM") },
    });
  });

  it("reads a password from a file, again for every connection, without its last line break", async () => {
    const file = join(folder, "password");
    await writeFile(file, "first\n");
    const env = { SLUICE_KAFKA_SASL: "scram-sha-512", SLUICE_KAFKA_USER: "ann", SLUICE_KAFKA_PASSWORD_FILE: file };
    const { sasl } = await readKafkaCluster(settingsWith(env));
    expect(sasl).toMatchObject({ mechanism: "SCRAM-SHA-512", username: "ann" });
    expect(await sasl!.password()).toBe("first");
    await writeFile(file, "second");
    expect(await sasl!.password()).toBe("second");
  });

  it.each([
    [{ SLUICE_KAFKA_CERT: "cert.pem" }, "SLUICE_KAFKA_KEY"],
    [{ SLUICE_KAFKA_CA: "/does/not/exist" }, "SLUICE_KAFKA_CA"],
    [{ SLUICE_KAFKA_PASSWORD: "secret" }, "SLUICE_KAFKA_SASL"],
    [{ SLUICE_KAFKA_SASL: "plain", SLUICE_KAFKA_PASSWORD: "secret" }, "SLUICE_KAFKA_USER"],
    [{ SLUICE_KAFKA_SASL: "plain", SLUICE_KAFKA_USER: "ann" }, "SLUICE_KAFKA_PASSWORD"],
    [
      { SLUICE_KAFKA_SASL: "plain", SLUICE_KAFKA_USER: "ann", SLUICE_KAFKA_PASSWORD_FILE: "/does/not/exist" },
      "SLUICE_KAFKA_PASSWORD_FILE",
    ],
  ])("is refused if settings do not fit together: %j", async (env, named) => {
    const error = await readKafkaCluster(settingsWith(env as never)).catch((thrown: unknown) => thrown as Error);
    expect(error).toMatchObject({ name: "SettingError", message: expect.stringContaining(named) });
    expect((error as Error).message).not.toContain("secret");
  });
});

describe("settings of Kafka", () => {
  it.each(["a", "a:0", "a:70000", "ann:secret@a:9092", "kafka://a:9092", "a:1,,b:2"])(
    "refuse %j as brokers, and do not repeat it",
    (given) => {
      const reading = parseSettings({ SLUICE_KAFKA: given });
      expect(reading).toMatchObject({ kind: "problems", problems: [{ path: ["SLUICE_KAFKA"] }] });
      expect(JSON.stringify(reading)).not.toContain(`${given}"`);
    },
  );

  it("must name brokers if policies are to be pushed by Kafka", () => {
    expect(parseSettings({ SLUICE_PUSH: "kafka", SLUICE_STORE_URL: "sqlite:x" })).toMatchObject({
      kind: "problems",
      problems: [{ path: ["SLUICE_PUSH"], message: expect.stringContaining("SLUICE_KAFKA") }],
    });
  });

  it("warn of brokers that nothing is sent to, and of flags without brokers", () => {
    expect(parseSettings({ SLUICE_KAFKA: "a:1" })).toMatchObject({ warnings: [{ path: ["SLUICE_KAFKA"] }] });
    expect(parseSettings({}, { kafkaUser: "ann" })).toMatchObject({ warnings: [{ path: ["--kafka-user"] }] });
    const used = { SLUICE_KAFKA: "a:1", SLUICE_PUSH: "kafka", SLUICE_STORE_URL: "sqlite:x" };
    expect(parseSettings(used)).toMatchObject({ warnings: [] });
  });
});

describe("the Kafka client", () => {
  it("is installed here", async () => {
    expect(await loadKafka("push")).toHaveProperty("Producer");
  });

  it("is asked for by name if it is not installed, and nothing else is mistaken for that", async () => {
    const missing = (name: string): (() => Promise<Kafka>) => {
      const error = Object.assign(new Error(`Cannot find package '${name}'`), { code: "ERR_MODULE_NOT_FOUND" });
      return () => Promise.reject(error);
    };
    await expect(loadKafka("push", missing("@platformatic/kafka"))).rejects.toThrow(
      /SLUICE_PUSH \(--push\): .*npm install @platformatic\/kafka/,
    );
    await expect(loadKafka("push", missing("avsc"))).rejects.toThrow("Cannot find package 'avsc'");
  });
});

describe("an error of the Kafka client", () => {
  const refused = Object.assign(new Error("not authorized"), { apiId: "TOPIC_AUTHORIZATION_FAILED" });
  const nested = new Error("Failed.", { cause: new AggregateError([refused], "Received response with error") });

  it("is rendered by the broker's code, else by its innermost reason", () => {
    expect(renderKafkaError(nested)).toBe("TOPIC_AUTHORIZATION_FAILED: not authorized");
    expect(renderKafkaError(new Error("a", { cause: new Error("connect ECONNREFUSED") }))).toBe("connect ECONNREFUSED");
    expect(renderKafkaError("text")).toBe("text");
  });

  it("is recognised by its code", () => {
    expect(hasKafkaCode(nested, "TOPIC_AUTHORIZATION_FAILED")).toBe(true);
    expect(hasKafkaCode(nested, "OFFSET_OUT_OF_RANGE")).toBe(false);
    expect([isUnknownTopic(nested), isUnknownTopic(new Error("Unknown topic x."))]).toEqual([false, true]);
  });
});
