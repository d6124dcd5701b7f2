import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { createCertificates, type TestCertificates } from "@sluice/test-servers";
import { until } from "./until.ts";

const run = promisify(execFile);

/** A real broker of Apache Kafka, on loopback, that is its own controller. */
export interface RealKafka {
  /** `127.0.0.1:34567` */
  readonly broker: string;
  /** The same broker behind TLS and SASL. */
  readonly secure: SecureListener;
  /** The same broker behind TLS that demands a client's certificate. */
  readonly mutual: MutualListener;
  /** Everything in a topic, as kcat reads it: `key` and `value`, null if it was deleted. */
  read(topic: string): Promise<readonly { readonly key: string | null; readonly payload: string | null }[]>;
  /** Ends it without warning. Its data stay. */
  kill(): Promise<void>;
  /** Starts it again, on the same ports. */
  start(): Promise<void>;
  close(): Promise<void>;
}

export interface SecureListener {
  /** `127.0.0.1:34568` */
  readonly broker: string;
  /** The authority that signed its certificate, a file in PEM. */
  readonly ca: string;
  readonly user: string;
  readonly password: string;
}

export interface MutualListener {
  /** `127.0.0.1:34569` */
  readonly broker: string;
  /** Files in PEM: the authority of both sides, and a client's certificate and key. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Known to the broker for PLAIN and both kinds of SCRAM. */
const user = "sluice";
const password = "a-password-for-kafka";

/** `lib`: a folder with its jars. */
export async function startKafka(lib: string): Promise<RealKafka> {
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-kafka-"));
  const certificates = await createCertificates();
  const [port = 0, securePort = 0, mutualPort = 0, controllerPort = 0] = await findFreePorts(4);
  const config = path.join(folder, "server.properties");
  const keystore = await writeKeystore(folder, certificates);
  await writeFile(
    config,
    renderProperties(folder, { ...certificates, port, securePort, mutualPort, controllerPort, keystore }),
  );
  const classes = path.join(lib, "*");
  const format = ["kafka.tools.StorageTool", "format", "--config", config, "--cluster-id", "c2x1aWNlLWNvbmZvcm1hbg"];
  for (const mechanism of ["SCRAM-SHA-256", "SCRAM-SHA-512"])
    format.push("--add-scram", `${mechanism}=[name=${user},password=${password}]`);
  await run("java", ["-cp", classes, ...format]);
  const broker = `127.0.0.1:${port}`;
  let child: ChildProcess | undefined;
  let log = "";

  async function start(): Promise<void> {
    log = "";
    child = spawn("java", ["-Xmx384m", "-XX:+UseSerialGC", "-cp", classes, "kafka.Kafka", config], {
      cwd: folder,
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [child.stdout!, child.stderr!])
      stream.on("data", (text) => {
        log = (log + String(text)).slice(-4_000);
      });
    await until("the broker answers", async () => {
      if (child!.exitCode !== null) throw new Error(`Kafka has ended. Its log ends with:\n${log}`);
      return run("kcat", ["-b", broker, "-L", "-m", "2"]).then(
        () => true,
        () => false,
      );
    });
  }

  async function kill(): Promise<void> {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  async function close(): Promise<void> {
    await kill();
    await certificates.close();
    await rm(folder, { recursive: true, force: true });
  }

  try {
    await start();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    broker,
    secure: { broker: `127.0.0.1:${securePort}`, ca: certificates.ca, user, password },
    mutual: {
      ...{ broker: `127.0.0.1:${mutualPort}`, ca: certificates.ca },
      ...{ cert: certificates.clientCert, key: certificates.clientKey },
    },
    async read(topic) {
      const args = ["-C", "-q", "-e", "-J", "-b", broker, "-t", topic, "-o", "beginning"];
      const { stdout } = await run("kcat", args, { maxBuffer: 256 * 1024 * 1024 });
      return stdout
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line) as { key: string | null; payload: string | null });
    },
    kill,
    start,
    close,
  };
}

/** One file with the key and the certificate, as Kafka reads PEM. */
async function writeKeystore(folder: string, { key, cert }: TestCertificates): Promise<string> {
  const file = path.join(folder, "keystore.pem");
  await writeFile(file, `${await readFile(key, "utf8")}${await readFile(cert, "utf8")}`, { mode: 0o600 });
  return file;
}

interface BrokerPlace {
  readonly port: number;
  readonly securePort: number;
  readonly mutualPort: number;
  readonly controllerPort: number;
  readonly keystore: string;
  /** The authority that clients' certificates are signed by. */
  readonly ca: string;
}

function renderProperties(folder: string, place: BrokerPlace): string {
  const { port, securePort, mutualPort, controllerPort, keystore, ca } = place;
  const [secure, mutual] = ["listener.name.sasl_ssl", "listener.name.ssl"];
  const forClients = `PLAINTEXT://127.0.0.1:${port},SASL_SSL://127.0.0.1:${securePort},SSL://127.0.0.1:${mutualPort}`;
  const security = "org.apache.kafka.common.security";
  const properties = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": `1@127.0.0.1:${controllerPort}`,
    listeners: `${forClients},CONTROLLER://127.0.0.1:${controllerPort}`,
    "advertised.listeners": forClients,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    [`${secure}.plain.sasl.jaas.config`]: `${security}.plain.PlainLoginModule required user_${user}="${password}";`,
    [`${secure}.scram-sha-256.sasl.jaas.config`]: `${security}.scram.ScramLoginModule required;`,
    [`${secure}.scram-sha-512.sasl.jaas.config`]: `${security}.scram.ScramLoginModule required;`,
    [`${secure}.ssl.keystore.type`]: "PEM",
    [`${secure}.ssl.keystore.location`]: keystore,
    [`${mutual}.ssl.keystore.type`]: "PEM",
    [`${mutual}.ssl.keystore.location`]: keystore,
    [`${mutual}.ssl.truststore.type`]: "PEM",
    [`${mutual}.ssl.truststore.location`]: ca,
    [`${mutual}.ssl.client.auth`]: "required",
    "log.dirs": path.join(folder, "data"),
    "num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    // Compacts at once what is not in the last segment, and a segment ends soon.
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.roll.ms": "2000",
    "log.cleaner.delete.retention.ms": "500",
    // One broker: its data must survive SIGKILL, which leaves them with the operating system.
    "log.flush.scheduler.interval.ms": "1000",
  };
  return `${Object.entries(properties)
    .map(([name, value]) => `${name}=${value}`)
    .join("\n")}\n`;
}

/** Some that are free at the same moment. */
async function findFreePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(async (server) => {
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      const address = server.address();
      return typeof address === "object" && address !== null ? address.port : 0;
    }),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
