import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { RecordingView } from "../what-if-control.ts";

const idPattern = /^[0-9a-z]{10,64}$/;

/** Recordings on disk: `ID.rec`, and `ID.json` with what is known of it. The folder belongs to one server. */
export class RecordingFolder {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async prepare(): Promise<void> {
    await mkdir(this.#path, { recursive: true, mode: 0o700 });
  }

  path(id: string): string {
    return join(this.#path, `${id}.rec`);
  }

  /** Newest first. What cannot be read is left out. */
  async list(): Promise<readonly RecordingView[]> {
    const names = await readdir(this.#path).catch(() => [] as string[]);
    const ids = names.filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -".json".length));
    const found = await Promise.all(ids.filter((id) => idPattern.test(id)).map((id) => this.find(id)));
    return found.filter((one) => one !== undefined).sort((one, other) => (one.id < other.id ? 1 : -1));
  }

  /** The ids of recordings without a description, which a list does not show. */
  async undescribed(): Promise<readonly string[]> {
    const names = new Set(await readdir(this.#path).catch(() => [] as string[]));
    const ids = [...names].filter((name) => name.endsWith(".rec")).map((name) => name.slice(0, -".rec".length));
    return ids.filter((id) => idPattern.test(id) && !names.has(`${id}.json`));
  }

  /** Undefined if there is none. */
  async find(id: string): Promise<RecordingView | undefined> {
    if (!idPattern.test(id)) return undefined;
    try {
      const view = JSON.parse(await readFile(this.#metaPath(id), "utf8")) as RecordingView;
      const { size } = await stat(this.path(id));
      return view.id === id ? { ...view, bytes: size } : undefined;
    } catch {
      return undefined;
    }
  }

  /** Whole or not at all. */
  async write(view: RecordingView): Promise<void> {
    const path = this.#metaPath(view.id);
    await writeFile(`${path}.new`, JSON.stringify(view), { mode: 0o600 });
    await rename(`${path}.new`, path);
  }

  async delete(id: string): Promise<void> {
    await rm(this.path(id), { force: true });
    await rm(this.#metaPath(id), { force: true });
  }

  #metaPath(id: string): string {
    return join(this.#path, `${id}.json`);
  }
}
