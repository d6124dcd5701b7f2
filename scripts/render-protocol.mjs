// Generates packages/protocol/src/generated from the .proto files of that package: codecs by ts-proto, descriptors for reflection by buf.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { repositoryRoot } from "./ensure-installed.mjs";

const protoFolder = path.join(repositoryRoot, "packages/protocol/proto");
const tools = path.join(repositoryRoot, "node_modules/.bin");

const codecOptions = [
  "importSuffix=.ts",
  "esModuleInterop=true",
  "enumsAsLiterals=true",
  "removeEnumPrefix=true",
  "unrecognizedEnum=false",
  "forceLong=number",
  "useOptionals=messages",
  "useExactTypes=false",
  "useDate=false",
  "outputJsonMethods=false",
  "outputServices=generic-definitions",
  "annotateFilesWithVersion=false",
];

/**
 * Text by path below `generated/`. Throws if the .proto files do not pass `buf lint`.
 *
 * @returns {Record<string, string>}
 */
export function renderProtocol() {
  buf(["lint"]);
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-protocol-"));
  try {
    const plugin = { local: path.join(tools, "protoc-gen-ts_proto"), out: folder, opt: codecOptions };
    buf(["generate", "--include-imports", "--template", JSON.stringify({ version: "v2", plugins: [plugin] })]);
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
    const codecs = files.map((file) => /** @type {const} */ ([file, readCodec(path.join(folder, file))]));
    return Object.fromEntries([...codecs, ["file-descriptors.ts", renderDescriptors()]].sort());
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {string} file */
function readCodec(file) {
  const text = readFileSync(file, "utf8");
  // Namespaces that hold the names of an enum's numbers as types: of no use here, and not every tool can strip them.
  const erasable = text.replaceAll(/^export namespace \w+ \{\n(?: {2}export type .*\n)+\}\n\n?/gm, "");
  // An entry of this name would be lost silently when assigned to a plain object.
  const guarded = erasable
    .replaceAll(
      /^( *)(message\.dimensions\[(\w+)\.key\] = .*)$/gm,
      '$1if ($3.key === "__proto__")\n$1  throw new globalThis.Error("dimensions.__proto__ is not a name that a dimension may have");\n$1$2',
    )
    .replaceAll(
      /^( *)(message\.costMap\[(\w+)\.key\] = .*)$/gm,
      '$1if ($3.key === "__proto__")\n$1  throw new globalThis.Error("cost_map.__proto__ is not an endpoint");\n$1$2',
    );
  // A field that is undefined equals an omitted one, under exactOptionalPropertyTypes too.
  return guarded.replaceAll("[K in keyof T]?: DeepPartial<T[K]> }", "[K in keyof T]?: DeepPartial<T[K]> | undefined }");
}

/** Every file with its descriptor, after the files it imports. */
function renderDescriptors() {
  const set = fromBinary(FileDescriptorSetSchema, buf(["build", "--exclude-source-info", "-o", "-#format=binpb"]));
  const entries = set.file.map((file) => {
    const bytes = Buffer.from(toBinary(FileDescriptorProtoSchema, file)).toString("base64");
    const inPackage = (/** @type {string} */ name) => `${file.package}.${name}`;
    const services = file.service.map(({ name }) => inPackage(name));
    const symbols = [
      ...file.messageType.flatMap((message) => listSymbols(file.package, message)),
      ...file.enumType.map(({ name }) => inPackage(name)),
      ...file.service.flatMap(({ name, method }) => [
        inPackage(name),
        ...method.map((one) => `${inPackage(name)}.${one.name}`),
      ]),
    ];
    return { name: file.name, imports: file.dependency, services, symbols, base64: bytes };
  });
  return `// Made from the .proto files by \`npm run generate\`. Do not edit.

/** A .proto file as servers describe it by reflection. */
export interface FileDescriptor {
  /** \`sluice/v1/rate_limiter.proto\` */
  readonly name: string;
  /** The files that it imports. */
  readonly imports: readonly string[];
  /** Full names of its services. */
  readonly services: readonly string[];
  /** Full names of its messages, enums, services and methods. */
  readonly symbols: readonly string[];
  /** A serialized google.protobuf.FileDescriptorProto. */
  readonly base64: string;
}

export const fileDescriptors: readonly FileDescriptor[] = ${JSON.stringify(entries, null, 2)};
`;
}

/**
 * @param {string} scope
 * @param {import("@bufbuild/protobuf/wkt").DescriptorProto} message
 * @returns {string[]}
 */
function listSymbols(scope, message) {
  const name = `${scope}.${message.name}`;
  return [
    name,
    ...message.nestedType.flatMap((nested) => listSymbols(name, nested)),
    ...message.enumType.map((nested) => `${name}.${nested.name}`),
  ];
}

/** @param {readonly string[]} args */
function buf(args) {
  const { status, error, stdout, stderr } = spawnSync(path.join(tools, "buf"), args, {
    cwd: protoFolder,
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status !== 0) throw new Error(`buf ${args[0]}: ${error?.message ?? ""}${stdout}${stderr}`);
  return stdout;
}
