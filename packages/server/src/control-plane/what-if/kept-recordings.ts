import { SluiceError } from "sluice";
import type { Recorder, StartedRecording } from "../../observe/recording/recorder.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { makeTimedId } from "../audit/make-id.ts";
import { notFound } from "../control-errors.ts";
import type { RecordingStart, RecordingView } from "../what-if-control.ts";
import { RecordingFolder } from "./recording-folder.ts";

export interface KeptRecordingsOptions {
  readonly recorder: Pick<Recorder, "start" | "active">;
  readonly folder: string;
  readonly maxFolderBytes: number;
  readonly keptMs: number;
  readonly node: string;
  readonly generation: () => number;
  readonly log: Logger;
  readonly nowMs: () => number;
}

/** What a start would be, with everything decided. */
export type PlannedRecording = RecordingView;

const hourMs = 3_600_000;
const usualBytes = 1024 ** 3;
/** How often old recordings make room for the one that runs. */
const roomEveryMs = 2_000;

/** The recordings of a server: starts and stops them, and keeps them within a size and an age. */
export class KeptRecordings {
  readonly #options: KeptRecordingsOptions;
  readonly #folder: RecordingFolder;
  #running: { view: RecordingView; readonly started: StartedRecording } | undefined;
  #isStarting = false;
  /** Resolves when what ended last is described on disk. */
  #ending: Promise<void> = Promise.resolve();

  constructor(options: KeptRecordingsOptions) {
    this.#options = options;
    this.#folder = new RecordingFolder(options.folder);
  }

  path(id: string): string {
    return this.#folder.path(id);
  }

  async list(): Promise<readonly RecordingView[]> {
    await this.#deleteOld();
    return (await this.#folder.list()).map((one) => this.#current(one));
  }

  /** Throws `resource_not_found`. */
  async find(id: string): Promise<RecordingView> {
    const found = this.#running?.view.id === id ? this.#running.view : await this.#folder.find(id);
    if (found === undefined) throw notFound(`recording ${id}`);
    return this.#current(found);
  }

  plan(
    { forMs = hourMs, maxBytes, sharePercent = 100, shareBy, hash = [] }: RecordingStart,
    startedBy: string,
  ): PlannedRecording {
    const { node, nowMs, generation, maxFolderBytes } = this.#options;
    const startedMs = nowMs();
    return {
      ...{ id: makeTimedId(startedMs), node, state: "recording", startedMs, endsMs: startedMs + forMs, startedBy },
      ...{ endedMs: undefined, endReason: undefined, requests: 0, dropped: 0, leftOut: 0, bytes: 0 },
      maxBytes: Math.min(maxBytes ?? usualBytes, maxFolderBytes),
      ...{ sharePercent, shareBy: sharePercent < 100 ? shareBy : undefined, hashed: [...new Set(hash)] },
      generation: generation(),
    };
  }

  /** Throws `already_exists` if one runs already. */
  async start(view: PlannedRecording): Promise<RecordingView> {
    if (this.#isStarting || this.#running !== undefined || this.#options.recorder.active !== undefined)
      throw alreadyRecording();
    this.#isStarting = true;
    try {
      await this.#folder.prepare();
      await this.#deleteOld();
      // Described first: a recording that runs can always be found and stopped.
      await this.#folder.write(view);
      this.#running = { view, started: await this.#begin(view) };
    } catch (error) {
      await this.#folder.delete(view.id).catch(() => undefined);
      throw error;
    } finally {
      this.#isStarting = false;
    }
    this.#makeRoom();
    return this.#current(view);
  }

  async stop(id: string): Promise<RecordingView> {
    await this.find(id);
    if (this.#running?.view.id === id) await this.#running.started.recording.stop("stopped");
    await this.#ending;
    return this.find(id);
  }

  async delete(id: string): Promise<RecordingView> {
    const found = await this.stop(id);
    await this.#folder.delete(id);
    return found;
  }

  async #begin(view: PlannedRecording): Promise<StartedRecording> {
    const started = await this.#options.recorder.start({
      path: this.#folder.path(view.id),
      forMs: view.endsMs - view.startedMs,
      ...{ maxBytes: view.maxBytes, share: view.sharePercent / 100, shareBy: view.shareBy, hashed: view.hashed },
      onEnd: () => {
        this.#ending = this.#ended();
      },
    });
    if (started === undefined) throw alreadyRecording();
    return started;
  }

  #current(view: RecordingView): RecordingView {
    const running = this.#running;
    if (running?.view.id === view.id) {
      const { recording, file } = running.started;
      return { ...view, ...recording.totals, bytes: file.bytes };
    }
    // The server that recorded it did not end well.
    if (view.state === "recording") return { ...view, state: "failed", endReason: "error" };
    return view;
  }

  async #ended(): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    const { recording, file } = running.started;
    const endReason = recording.end ?? "error";
    // The second call joins the first, which has begun.
    await recording.stop(endReason);
    const view: RecordingView = {
      ...running.view,
      ...recording.totals,
      ...{ bytes: file.bytes, endedMs: this.#options.nowMs(), endReason },
      state: endReason === "error" ? "failed" : "done",
    };
    await this.#folder
      .write(view)
      .catch((error: unknown) => this.#options.log.error("recording.undescribed", { id: view.id, err: error }));
    this.#running = undefined;
  }

  /** While a recording runs, the others make room as it grows. */
  #makeRoom(): void {
    setTimeout(async () => {
      if (this.#running === undefined) return;
      await this.#deleteOld().catch((error: unknown) =>
        this.#options.log.warn("recording.not_deleted", { err: error }),
      );
      this.#makeRoom();
    }, roomEveryMs).unref();
  }

  /** Deletes the oldest, until all fit by their actual sizes, those that are too old, and files without a description. */
  async #deleteOld(): Promise<void> {
    const { maxFolderBytes, keptMs, nowMs, log } = this.#options;
    const running = this.#running;
    let left = maxFolderBytes - (running?.started.file.bytes ?? 0);
    for (const { id, bytes, startedMs } of await this.#folder.list()) {
      if (running?.view.id === id) continue;
      left -= bytes;
      const isOld = nowMs() - startedMs > keptMs;
      if (left >= 0 && !isOld) continue;
      await this.#folder.delete(id);
      log.info("recording.deleted", { id, bytes, reason: isOld ? "age" : "size" });
    }
    for (const id of await this.#folder.undescribed()) {
      if (this.#isStarting || this.#running?.view.id === id) continue;
      await this.#folder.delete(id);
      log.info("recording.deleted", { id, reason: "undescribed" });
    }
  }
}

function alreadyRecording(): SluiceError {
  return new SluiceError("already_exists", "this server is recording already; stop that recording first");
}
