/** The parts of JSON Schema that our schemas use. */
export interface Schema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema | false;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
}

/** `takes` is for what a client sends or a person writes, `answers` for what it reads. */
export type Direction = "takes" | "answers";

/**
 * What a schema promises, one line each: every field with its type, every value that may be written (`takes`), every field that is
 * there in all answers (`always`), and every field that must be written (`needs`, which may only become fewer). What a `$ref` leads
 * to is named, and has its own lines, so that recursion ends.
 */
export function flattenSchema(schema: Schema, place: string, direction: Direction): readonly string[] {
  const lines: string[] = [];
  const visit = (part: Schema, at: string): void => {
    if (part.$ref !== undefined) lines.push(`${direction} ${at}: ${nameOfRef(part.$ref)}`);
    for (const type of [part.type ?? []].flat()) lines.push(`${direction} ${at}: ${type}`);
    if (direction === "takes") {
      const values = [...(part.enum ?? []), ...(part.const === undefined ? [] : [part.const])];
      for (const value of values) lines.push(`takes ${at} = ${JSON.stringify(value)}`);
    }
    for (const [name, inner] of Object.entries(part.properties ?? {})) visit(inner, `${at}.${name}`);
    const word = direction === "takes" ? "needs" : "always";
    for (const name of part.required ?? []) lines.push(`${word} ${at}.${name}`);
    if (typeof part.additionalProperties === "object") visit(part.additionalProperties, `${at}.*`);
    if (part.items) visit(part.items, `${at}[]`);
    for (const variant of [...(part.oneOf ?? []), ...(part.anyOf ?? []), ...(part.allOf ?? [])]) visit(variant, at);
  };
  visit(schema, place);
  return lines;
}

/** A schema for what people write, with its definitions. */
export function flattenDocument(schema: Schema): readonly string[] {
  const definitions = Object.entries(schema.$defs ?? {});
  return [
    ...flattenSchema(schema, "", "takes"),
    ...definitions.flatMap(([name, inner]) => flattenSchema(inner, `#${name}`, "takes")),
  ];
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> };
}

interface Operation {
  readonly parameters?: readonly { name: string; in: string; required?: boolean; schema?: Schema }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { schema?: Schema }>> };
  readonly responses: Readonly<Record<string, { content?: Readonly<Record<string, { schema?: Schema }>> }>>;
}

/** Every route with what it takes and answers, and every named schema in the directions in which routes use it. */
export function flattenOpenApi(api: OpenApi): readonly string[] {
  const lines: string[] = [];
  for (const [path, operations] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const route = `${method.toUpperCase()} ${path}`;
      lines.push(route, ...flattenOperation(operation, route));
    }
  }
  const schemas = api.components?.schemas ?? {};
  const flattened = new Set<string>();
  for (let at = 0; at < lines.length; at++) {
    const [, direction, name] = /^(takes|answers) .*: #(\S+)$/.exec(lines[at]!) ?? [];
    const schema = schemas[name ?? ""];
    if (direction === undefined || schema === undefined || flattened.has(`${direction} ${name}`)) continue;
    flattened.add(`${direction} ${name}`);
    lines.push(...flattenSchema(schema, `#${name}`, direction as Direction));
  }
  return lines;
}

function flattenOperation(operation: Operation, route: string): readonly string[] {
  const parameters = (operation.parameters ?? []).flatMap(({ name, in: where, required = false, schema = {} }) => [
    ...flattenSchema(schema, `${route} ${where} ${name}`, "takes"),
    ...(required ? [`needs ${route} ${where} ${name}`] : []),
  ]);
  const bodies = Object.entries(operation.requestBody?.content ?? {}).flatMap(([type, { schema = {} }]) => [
    `takes ${route} ${type}`,
    ...flattenSchema(schema, `${route} body`, "takes"),
  ]);
  const answers = Object.entries(operation.responses).flatMap(([status, { content = {} }]) => [
    `answers ${route} ${status}`,
    ...Object.entries(content).flatMap(([type, { schema = {} }]) => [
      `answers ${route} ${status} ${type}`,
      ...flattenSchema(schema, `${route} ${status}`, "answers"),
    ]),
  ]);
  return [...parameters, ...bodies, ...answers];
}

/** `#/$defs/window` and `#/components/schemas/window` are `#window`. */
function nameOfRef(ref: string): string {
  return `#${ref.slice(ref.lastIndexOf("/") + 1)}`;
}
