import type { Limiter, Problem } from "sluice";
import { preparePolicy } from "sluice/policy-text";
import { countPolicies } from "../../data-plane/policy-files/count-policies.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import type { StoreMetrics } from "../../observe/telemetry/store-metrics.ts";
import { createYield } from "../create-yield.ts";
import { type ComposedPolicies, composeInTurns, composePolicySet } from "../documents/compose-policy-set.ts";
import { createDocumentReader } from "../documents/read-documents.ts";
import { digestRows, type StoredGeneration } from "../documents/stored-generation.ts";
import type { PoliciesInForce } from "./policies-in-force.ts";

/** The source of a generation: the store itself, the file that keeps it, or the Kafka topic that carries it. */
export type GenerationSource = "store" | "snapshot" | "topic";

export interface AppliedGenerationOptions {
  /** The store's address, without user and password. */
  readonly where: string;
  readonly limiter: Pick<Limiter, "snapshot">;
  readonly policies: Pick<PoliciesInForce, "useStored" | "files">;
  readonly figures: Pick<StoreMetrics, "countRefused">;
  readonly log: Logger;
  /** Called with everything that was applied. */
  readonly onApplied: (current: StoredGeneration, source: GenerationSource) => void;
  readonly nowMs: () => number;
  /** Once it is aborted, nothing more is applied. */
  readonly ended: AbortSignal;
}

interface CurrentGeneration {
  readonly stored: StoredGeneration;
  readonly source: GenerationSource;
  readonly digest: string;
  readonly atMs: number;
}

/**
 * The generation of the store that this node decides by, always whole, and the one that it had to refuse:
 *
 *     nothing ──apply──► applied ◄──apply──► applied, and a later one refused (the last good policies stay)
 */
export class AppliedGeneration {
  readonly #options: AppliedGenerationOptions;
  readonly #reader = createDocumentReader();
  #current: CurrentGeneration | undefined;
  #refused: { readonly generation: number; readonly reason: string } | undefined;
  #problems: readonly Problem[] = [];

  constructor(options: AppliedGenerationOptions) {
    this.#options = options;
  }

  /** Undefined before there is any. */
  get current(): CurrentGeneration | undefined {
    return this.#current;
  }

  /** Undefined before there is any. */
  get generation(): number | undefined {
    return this.#current?.stored.generation;
  }

  /** The generation that could not be applied, and why. */
  get refused(): { readonly generation: number; readonly reason: string } | undefined {
    return this.#refused;
  }

  /** The problems that cause parts of the generation to be left out. */
  get problems(): readonly Problem[] {
    return this.#problems;
  }

  /** Returns whether the policies decide now. Never throws: what cannot be applied is refused and reported, once. */
  async apply(stored: StoredGeneration, source: GenerationSource): Promise<boolean> {
    const { nowMs, ended } = this.#options;
    const before = this.#current;
    try {
      const digest = await this.#use(stored, before?.digest);
      if (ended.aborted) return false;
      const isNew =
        before?.stored.generation !== stored.generation || before.source !== source || before.digest !== digest;
      this.#current = { stored, source, digest, atMs: isNew ? nowMs() : before.atMs };
      if (source === "store") this.#refused = undefined;
      if (isNew) this.#report(this.#current, before);
      return true;
    } catch (error) {
      this.#refuse(stored.generation, error);
      return false;
    }
  }

  /**
   * Puts the policies in force if they differ from the current ones. They are composed and compiled a few at a time,
   * between decisions, and then applied at once.
   */
  async #use(stored: StoredGeneration, digestBefore: string | undefined): Promise<string> {
    const { policies, nowMs, ended } = this.#options;
    const digest = digestRows(stored.rows);
    if (digest === digestBefore && this.#refused === undefined) return digest;
    const ahead = { files: policies.files, composed: await this.#prepare(stored) };
    if (ended.aborted) return digest;
    // Composed again whenever files change, because stored policies may refer to them.
    policies.useStored((files) => {
      const composed =
        files === ahead.files
          ? ahead.composed
          : composePolicySet(stored.rows, nowMs(), { reader: this.#reader, files });
      this.#reportProblems(composed.problems);
      return composed.policySet;
    });
    return digest;
  }

  async #prepare(stored: StoredGeneration): Promise<ComposedPolicies> {
    const { policies, nowMs } = this.#options;
    const composed = await composeInTurns(stored.rows, nowMs(), { reader: this.#reader, files: policies.files });
    const yieldIfDue = createYield();
    for (const policy of composed.policySet.policies) {
      preparePolicy(policy);
      await yieldIfDue();
    }
    return composed;
  }

  #report({ stored, source, digest }: CurrentGeneration, before: CurrentGeneration | undefined): void {
    const { where, limiter, log, onApplied } = this.#options;
    const { generation } = stored;
    log.info(digest === before?.digest ? "store.generation_without_changes" : "store.policies_applied", {
      store: where,
      generation,
      policies: countPolicies(limiter.snapshot.policySet),
      source,
    });
    onApplied(stored, source);
  }

  #refuse(generation: number, error: unknown): void {
    const { where, figures, log } = this.#options;
    const reason = error instanceof Error ? error.message : String(error);
    if (this.#refused?.generation !== generation || this.#refused.reason !== reason) {
      figures.countRefused();
      log.error("store.policies_unusable", { store: where, generation, err: error });
    }
    this.#refused = { generation, reason };
  }

  #reportProblems(found: readonly Problem[]): void {
    const { where, log } = this.#options;
    const isNew = JSON.stringify(found) !== JSON.stringify(this.#problems);
    this.#problems = found;
    if (isNew && found.length > 0)
      log.error("store.policies_left_out", {
        store: where,
        errors: found.length,
        problems: found.slice(0, maxReported),
      });
  }
}

const maxReported = 20;
