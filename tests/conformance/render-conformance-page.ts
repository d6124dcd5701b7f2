import { contractCases } from "../clients/contract/contract-cases.ts";
import { grpcEngines } from "../clients/contract/grpc-engines.ts";
import { clientAdapters } from "./client-parts.ts";
import type { PartResult } from "./conformance-part.ts";

/** docs/conformance.md, from everything that was played. It has no date, so that it changes only if results do. */
export function renderConformancePage(results: readonly PartResult[]): string {
  const engines = grpcEngines.filter(({ name }) => results.some(({ engine }) => engine === name));
  return [
    opening,
    ...engines.flatMap(({ name }) =>
      renderEngine(
        name,
        results.filter(({ engine }) => engine === name),
      ),
    ),
    renderLacks(),
    ...results.filter(({ part }) => part === "kafka").map(renderKafka),
  ].join("\n");
}

const kafkaHeading = "## Apache Kafka ";

/** The same page with another section about Kafka, which is the last. */
export function replaceKafka(page: string, result: PartResult): string {
  const place = page.indexOf(`\n${kafkaHeading}`);
  return `${place === -1 ? page : page.slice(0, place)}\n${renderKafka(result)}`;
}

function renderKafka({ version, cases }: PartResult): string {
  const rows = cases.map(({ name, outcome, because }) =>
    row([name, outcome === "passed" ? "yes" : `no: ${because ?? "**not expected**"}`]),
  );
  const about = [
    "A real broker that is its own controller, with servers in separate processes",
    "([Kafka](kafka.md)). Readers are kcat, which is librdkafka's.",
  ];
  return `${[`${kafkaHeading}${version}`, "", ...about, "", ...table(["with Sluice …", "passed"]), ...rows].join("\n")}\n`;
}

const opening = `# Conformance

This page is for people who ask Sluice over gRPC, or connect it to Kafka,
and want to know which tools, clients and servers check that it behaves.
None of them is ours.
\`npm run conformance\` plays everything below on real connections and writes this page;
it fails if a case fails that is not listed here with a reason, and also if a listed case passes.
\`npm test\` plays the contract with grpc-js, grpcio, curl and nghttp.
The server's side of gRPC is called its engine.
`;

function renderEngine(engine: string, results: readonly PartResult[]): readonly string[] {
  const h2spec = results.find(({ part }) => part === "h2spec");
  const envoy = results.find(({ part }) => part === "envoy");
  const clients = results.filter(({ part }) => part !== "h2spec" && part !== "envoy");
  return [
    `## The engine ${engine}`,
    "",
    ...(h2spec === undefined ? [] : renderH2spec(h2spec)),
    ...(clients.length === 0 ? [] : renderClients(clients)),
    ...(envoy === undefined ? [] : renderEnvoy(envoy)),
  ];
}

function renderH2spec({ version, cases }: PartResult): readonly string[] {
  // A case that varies is among the others whatever it did this time, so that the page does not change with it.
  const rest = cases.filter(({ outcome, because }) => outcome !== "passed" || because !== undefined);
  const passed = cases.length - rest.length;
  return [
    `### HTTP/2: h2spec ${version}`,
    "",
    `h2spec played ${cases.length} cases, strict ones included; ${passed} passed.`,
    "h2spec asks with GET, which is no gRPC and is refused by its headers.",
    "If that answer was complete before a wrong frame of h2spec arrived, the case was played again, up to 20 times.",
    ...(rest.length === 0
      ? [""]
      : ["The others:", "", ...table(["case", "what h2spec does", "why it does not pass, or not always"])]),
    ...rest.map(({ id, name, because = "**not expected**" }) => row([id, name, because])),
    ...(rest.length === 0 ? [] : [""]),
  ];
}

function renderClients(clients: readonly PartResult[]): readonly string[] {
  const heads = clients.map(({ peer, version }) => `${peer} ${version}`);
  const notes: string[] = [];
  const rows = contractCases.map(({ name }) => {
    const cells = clients.map(({ cases, peer }) => {
      const played = cases.find((one) => one.name === name);
      if (played === undefined) return "–";
      if (played.outcome === "passed" && played.because === undefined) return "yes";
      notes.push(row([peer, name, played.because ?? "**not expected**"]));
      return played.varies === true ? "not always" : "no";
    });
    return row([name, ...cells]);
  });
  return [
    "### The contract of the gRPC API",
    "",
    "Each row is a case; a dash means that the client cannot play it ([why](#what-clients-cannot-play)).",
    "",
    ...table(["the server …", ...heads]),
    ...rows,
    "",
    ...(notes.length === 0 ? [] : [...table(["client", "case", "why it does not pass, or not always"]), ...notes, ""]),
  ];
}

function renderEnvoy({ version, cases }: PartResult): readonly string[] {
  return [
    `### Envoy ${version}`,
    "",
    "A real Envoy in front of an app, with its rate limit filter asking Sluice.",
    "",
    ...table(["Envoy …", "passed"]),
    ...cases.map(({ name, outcome, because }) =>
      row([name, outcome === "passed" ? "yes" : `no: ${because ?? "**?**"}`]),
    ),
    "",
  ];
}

function renderLacks(): string {
  const rows = clientAdapters.flatMap(({ name, lacks }) =>
    Object.entries(lacks).map(([need, reason]) => row([name, need, reason])),
  );
  return `${["## What clients cannot play", "", ...table(["client", "what", "why"]), ...rows].join("\n")}\n`;
}

function table(heads: readonly string[]): readonly string[] {
  return [row(heads), `|${heads.map(() => "---").join("|")}|`];
}

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}
