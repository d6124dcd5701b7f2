/** What a check asks about: the body of `POST /api/v1/explain`. */
export interface AskedRequest {
  readonly dimensions: Readonly<Record<string, string>>;
  readonly cost?: number | undefined;
  readonly domain?: string | undefined;
}

export interface ParsedRequest {
  readonly request: AskedRequest;
  /** What was left out, and why, one sentence each. */
  readonly notes: readonly string[];
}

/** Headers whose value names a dimension under another name. */
const knownHeaders: Readonly<Record<string, string>> = {
  "x-forwarded-for": "ip",
  "x-real-ip": "ip",
  "x-user-id": "user",
  "x-tenant-id": "tenant",
  "x-account-id": "tenant",
  "x-org-id": "tenant",
};

/** Explaining a request needs no credential, and a page must not show one. */
const secretHeader = /^(authorization|cookie|proxy-authorization|x-api-key|api-key|.*token.*|.*secret.*)$/;

const methodName = /^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)$/;

/**
 * Reads a request that someone pasted: a check as JSON, `tenant=acme endpoint=/v1/search`, a curl command, or the head of an HTTP
 * request. `dimensions` are the names that policies use: a header of that name, or `x-` and that name, becomes the dimension.
 * Undefined: it is none of these.
 */
export function parseRequest(text: string, dimensions: readonly string[] = []): ParsedRequest | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  if (trimmed.startsWith("{")) return parseCheck(trimmed);
  if (/^(\$\s*)?curl\s/.test(trimmed)) return parseCurl(trimmed.replace(/^\$\s*/, ""), dimensions);
  if (/^[A-Z]+ \S+( HTTP\/[\d.]+)?(\r?\n|$)/.test(trimmed)) return parseHead(trimmed, dimensions);
  return parsePairs(trimmed);
}

/** `tenant=acme endpoint="/a b" cost=5`, as the command line takes it. */
export function parsePairs(text: string): ParsedRequest | undefined {
  const words = splitWords(text);
  const pairs = words.map((word) => /^([\w.-]+)=(.*)$/s.exec(word));
  if (words.length === 0 || pairs.some((pair) => pair === null)) return undefined;
  const dimensions: Record<string, string> = {};
  for (const pair of pairs) dimensions[pair![1]!] = pair![2]!;
  const { cost, ...rest } = dimensions;
  return cost !== undefined && /^\d+$/.test(cost)
    ? { request: { dimensions: rest, cost: Number(cost) }, notes: [] }
    : { request: { dimensions }, notes: [] };
}

/** The same request as text that `parsePairs` reads. */
export function renderPairs({ dimensions, cost }: AskedRequest): string {
  const quoted = (value: string): string => (/[\s"'\\]/.test(value) || value === "" ? JSON.stringify(value) : value);
  const pairs = Object.entries(dimensions).map(([name, value]) => `${name}=${quoted(value)}`);
  return [...pairs, ...(cost === undefined || cost === 1 ? [] : [`cost=${cost}`])].join(" ");
}

function parseCheck(text: string): ParsedRequest | undefined {
  try {
    const { dimensions, cost, domain } = JSON.parse(text) as Partial<AskedRequest>;
    if (typeof dimensions !== "object" || dimensions === null) return undefined;
    const texts = Object.entries(dimensions).map(([name, value]) => [name, String(value)]);
    const request = { dimensions: Object.fromEntries(texts) as Record<string, string>, cost, domain };
    return { request, notes: [] };
  } catch {
    return undefined;
  }
}

function parseCurl(text: string, dimensions: readonly string[]): ParsedRequest | undefined {
  const words = splitWords(text.replaceAll(/\\\r?\n/g, " ")).slice(1);
  const headers: [string, string][] = [];
  let method: string | undefined;
  let url: string | undefined;
  let hasBody = false;
  for (let i = 0; i < words.length; i += 1) {
    const word = words[i]!;
    if (word === "-X" || word === "--request") method = words[++i];
    else if (word === "-H" || word === "--header") headers.push(splitHeader(words[++i] ?? ""));
    else if (/^(-d|--data.*|--json|-F|--form)$/.test(word)) {
      hasBody = true;
      i += 1;
    } else if (/^(-u|--user|-A|--user-agent|-b|--cookie|-o|--output|-m|--max-time)$/.test(word)) i += 1;
    else if (!word.startsWith("-")) url ??= word;
  }
  if (url === undefined) return undefined;
  return fromHttp(method ?? (hasBody ? "POST" : "GET"), url, headers, dimensions);
}

function parseHead(text: string, dimensions: readonly string[]): ParsedRequest | undefined {
  const [first = "", ...lines] = text.split(/\r?\n/);
  const [method = "", url = ""] = first.split(" ");
  if (!methodName.test(method)) return undefined;
  const end = lines.indexOf("");
  const headers = (end < 0 ? lines : lines.slice(0, end)).map(splitHeader);
  return fromHttp(method, url, headers, dimensions);
}

function fromHttp(
  method: string,
  url: string,
  headers: readonly (readonly [string, string])[],
  names: readonly string[],
): ParsedRequest {
  const dimensions: Record<string, string> = { method: method.toUpperCase(), endpoint: pathOf(url) };
  const notes: string[] = [];
  for (const [name, value] of headers) {
    if (secretHeader.test(name)) {
      notes.push(`${name} was left out: it may hold a secret. Add the dimension that it stands for, such as user=… .`);
      continue;
    }
    const plain = name.replace(/^x-/, "").replaceAll("-", "_");
    const dimension = knownHeaders[name] ?? names.find((one) => one === plain || `${one}_id` === plain);
    if (dimension !== undefined && value !== "")
      dimensions[dimension] = dimension === "ip" ? firstAddress(value) : value;
  }
  return { request: { dimensions }, notes };
}

function pathOf(url: string): string {
  const path = url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, "");
  return path.startsWith("/") ? path : `/${path}`;
}

function firstAddress(list: string): string {
  return list.split(",", 1)[0]!.trim();
}

function splitHeader(line: string): [string, string] {
  const colon = line.indexOf(":");
  return [line.slice(0, Math.max(colon, 0)).trim().toLowerCase(), line.slice(colon + 1).trim()];
}

/** Words as a shell splits them: by spaces, except inside of quotes. */
function splitWords(text: string): readonly string[] {
  const words = text.match(/(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+/gs) ?? [];
  return words.map((word) =>
    word.replaceAll(
      /'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)/gs,
      (_all, single?: string, double?: string, escaped?: string) => {
        return single ?? double?.replaceAll(/\\(.)/gs, "$1") ?? escaped ?? "";
      },
    ),
  );
}
