import { findImports, resolveRelative } from "./module-syntax.ts";
import { isTest, isTypeScript, type SourceTree } from "./source-tree.ts";

interface Arrows {
  /** Where the package lives. */
  readonly folder: string;
  /** Its npm name, by which others import it. */
  readonly name: string;
  /** Workspace packages that it may import. */
  readonly packages: readonly string[];
  /** Workspace packages that one file of it loads by `import()`, and by no other syntax, because they may not be installed. */
  readonly loads?: Readonly<Record<string, readonly string[]>>;
  /** Whether it may import Node's own modules and the npm packages that it declares. */
  readonly outside: boolean;
  /** Published as a bundle, which has its npm packages in it: they are development dependencies. */
  readonly bundled?: boolean;
  /**
   * The folders of its `src`, each with the others that it may import. A package with this table has no other folders.
   * Files next to them may be imported by every folder, and import none, except the package's entries.
   */
  readonly layers?: {
    readonly entries: readonly string[];
    readonly folders: Readonly<Record<string, readonly string[]>>;
  };
  /** Folders that may import one npm package more. */
  readonly exceptions?: Readonly<Record<string, readonly string[]>>;
}

/** Which package may import what. A package that is not in this table may not exist. */
export const arrows: readonly Arrows[] = [
  {
    folder: "packages/core",
    name: "sluice",
    packages: [],
    outside: false,
    exceptions: {
      "packages/core/src/policy-text": ["yaml"],
      "packages/core/src/policy-file": ["node:fs", "node:path"],
    },
  },
  { folder: "packages/redis", name: "@sluice/redis", packages: ["sluice"], outside: true },
  { folder: "packages/sql", name: "@sluice/sql", packages: ["sluice"], outside: true },
  { folder: "packages/protocol", name: "@sluice/protocol", packages: ["sluice"], outside: true },
  { folder: "packages/client", name: "@sluice/client", packages: ["sluice", "@sluice/protocol"], outside: true },
  { folder: "packages/pace", name: "@sluice/pace", packages: ["sluice"], outside: true },
  {
    folder: "packages/simulate",
    name: "@sluice/simulate",
    packages: ["sluice"],
    outside: true,
    layers: {
      entries: ["index.ts"],
      // What replays and what renders work on data alone, so that a server and a browser can use them too.
      folders: { logs: ["replay"], report: ["replay"], replay: [] },
    },
  },
  {
    folder: "packages/console",
    name: "@sluice/console",
    packages: ["sluice", "@sluice/protocol", "@sluice/simulate"],
    outside: true,
    bundled: true,
    layers: {
      entries: ["main.tsx"],
      // Views know neither the shell nor one another, so each can be loaded alone.
      folders: {
        app: ["views", "session", "api", "ui", "url", "format"],
        views: ["policy", "decision", "session", "api", "ui", "url", "format"],
        session: ["api", "ui"],
        policy: ["format"],
        decision: ["ui", "format"],
        ui: ["api", "url", "format"],
        api: [],
        url: [],
        format: [],
      },
    },
  },
  {
    folder: "packages/middleware",
    name: "@sluice/middleware",
    packages: ["sluice", "@sluice/redis"],
    outside: true,
  },
  {
    folder: "packages/server",
    name: "@sluice/server",
    packages: ["sluice", "@sluice/redis", "@sluice/sql", "@sluice/protocol", "@sluice/simulate"],
    outside: true,
    layers: {
      entries: ["index.ts", "command.ts", "internal.ts"],
      folders: {
        boot: ["compat", "control-plane", "data-plane", "observe", "kafka", "settings"],
        command: ["boot", "control-plane", "data-plane", "observe", "settings"],
        compat: ["control-plane", "data-plane", "observe", "settings"],
        "control-plane": ["data-plane", "observe", "kafka", "settings"],
        "data-plane": ["observe", "settings"],
        observe: ["kafka", "settings"],
        kafka: ["settings"],
        settings: [],
      },
    },
  },
  {
    folder: "packages/cli",
    name: "@sluice/cli",
    packages: ["sluice", "@sluice/client", "@sluice/protocol", "@sluice/simulate"],
    loads: { "packages/cli/src/load-server.ts": ["@sluice/server"] },
    outside: true,
    layers: {
      entries: ["index.ts", "main.ts", "program.ts", "load-server.ts", "render-failure.ts"],
      folders: {
        commands: ["control", "server", "capacity", "arguments", "terminal"],
        capacity: [],
        control: ["server", "arguments", "terminal"],
        server: ["arguments", "terminal"],
        arguments: ["terminal"],
        terminal: [],
      },
    },
  },
  {
    folder: "bench",
    name: "@sluice/bench",
    packages: [
      "sluice",
      "@sluice/client",
      "@sluice/middleware",
      "@sluice/protocol",
      "@sluice/redis",
      "@sluice/server",
      "@sluice/simulate",
      "@sluice/sql",
      "@sluice/test-servers",
    ],
    outside: true,
  },
  { folder: "tests/servers", name: "@sluice/test-servers", packages: [], outside: true },
];

/** Every forbidden import that leaves its package, one line each. */
export function findForbiddenImports(tree: SourceTree): readonly string[] {
  const problems: string[] = [];
  for (const [file, text] of tree) {
    if (file.startsWith("packages/") && file.endsWith("/package.json") && findArrows(file) === undefined) {
      problems.push(`${file}: the package has no row in the table of import arrows`);
    }
    if (!isTypeScript(file)) continue;
    for (const { specifier, line, isLoaded } of findImports(text, file)) {
      const why = whyForbidden(tree, file, specifier, isLoaded);
      if (why !== undefined) problems.push(`${file}:${line} imports ${specifier}: ${why}`);
    }
  }
  return problems;
}

function whyForbidden(tree: SourceTree, file: string, specifier: string, isLoaded: boolean): string | undefined {
  const own = findArrows(file);
  if (specifier.startsWith(".")) {
    const other = findArrows(resolveRelative(file, specifier));
    if (other !== undefined && other !== own) return `reaches into ${other.folder}; import "${other.name}" instead`;
    if (own !== undefined && other === undefined) return `leaves ${own.folder}`;
    return own === undefined ? undefined : whyAgainstLayers(own, file, resolveRelative(file, specifier));
  }
  const name = parsePackageName(specifier);
  // Code outside of packages, and tests, may use whatever is installed.
  if (own === undefined || isTest(file)) return undefined;
  if (name === own.name) return "a package imports its own files by relative paths";
  if (arrows.some((row) => row.name === name)) {
    if (own.packages.includes(name) || (isLoaded && own.loads?.[file]?.includes(name))) return undefined;
    return `${own.folder} may not import ${name}`;
  }
  for (const [folder, names] of Object.entries(own.exceptions ?? {})) {
    if (file.startsWith(`${folder}/`) && names.includes(name)) return undefined;
  }
  if (!own.outside) return `${own.folder} imports nothing`;
  if (specifier.startsWith("node:")) return undefined;
  return declaresDependency(tree, own, name) ? undefined : `${own.folder}/package.json does not list ${name}`;
}

/** Tests, and their shared code, may import from every layer. */
function whyAgainstLayers({ folder, layers }: Arrows, file: string, imported: string): string | undefined {
  const source = `${folder}/src/`;
  if (layers === undefined || !file.startsWith(source) || isTest(file) || file.includes("/testing/")) return undefined;
  const [from, to] = [file, imported].map((one) => one.slice(source.length).split("/"));
  const [layer, target] = [from, to].map((parts) => (parts!.length > 1 ? parts![0]! : ""));
  if (layer === target || target === "") return undefined;
  if (layer === "") {
    return layers.entries.includes(from![0]!) ? undefined : `${from![0]} is for every folder, and imports none`;
  }
  const allowed = layers.folders[layer!];
  if (allowed === undefined) return `the folder ${layer} has no row in the table of import arrows`;
  return allowed.includes(target!) ? undefined : `${layer} may not import ${target}`;
}

function findArrows(file: string): Arrows | undefined {
  return arrows.find((row) => file.startsWith(`${row.folder}/`));
}

/** `@scope/name` of `@scope/name/sub/path`. */
function parsePackageName(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

function declaresDependency(tree: SourceTree, { folder, bundled = false }: Arrows, name: string): boolean {
  const manifest: unknown = JSON.parse(tree.get(`${folder}/package.json`) ?? "{}");
  if (typeof manifest !== "object" || manifest === null) return false;
  const {
    dependencies = {},
    peerDependencies = {},
    devDependencies = {},
  } = manifest as Record<string, Record<string, string> | undefined>;
  return name in dependencies || name in peerDependencies || (bundled && name in devDependencies);
}
