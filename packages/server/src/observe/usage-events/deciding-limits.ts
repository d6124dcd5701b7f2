import type { CheckRequest, Decision, Limiter, Policy, Window } from "sluice";
import { type EventMode, findApplying, findLimit, joinSubject, readDimension, readLimitValues } from "sluice/internal";
import type { CompiledLimit } from "sluice/store";
import { publicSubject } from "./public-subject.ts";

/** A limit by which requests were decided, as events name it. */
export interface DecidingLimit {
  /** All that events say of it, as one text: equal for equal limits, also of different snapshots. */
  readonly name: string;
  readonly policy: string | undefined;
  readonly version: number | undefined;
  readonly scope: string | undefined;
  readonly events: EventMode;
  /** Undefined for a limit that requests bring along, and for decisions without one. */
  readonly compiled: CompiledLimit | undefined;
}

/** Limits remembered by their windows. Requests may bring any number of their own. */
const maxRemembered = 20_000;

const isEach = ({ events }: Policy): boolean => events === "each";

/** Finds the limit behind a decision, without deciding again: by its window's identity once it was found by name. */
export class DecidingLimits {
  readonly #limiter: Pick<Limiter, "snapshot">;
  readonly #ipv6PrefixBits: number;
  readonly #byWindow = new Map<Window, DecidingLimit>();
  readonly #byName = new Map<string, DecidingLimit>();
  #snapshot: object | undefined;
  #hasEach = false;

  constructor(limiter: Pick<Limiter, "snapshot">, ipv6PrefixBits: number) {
    this.#limiter = limiter;
    this.#ipv6PrefixBits = ipv6PrefixBits;
  }

  find(request: CheckRequest, decision: Decision): DecidingLimit {
    this.#follow();
    const { window, policy, scope, version } = decision;
    const isGiven = request.limits !== undefined;
    if (window === undefined || isGiven) return this.#findByName(decision, isGiven);
    // Limits of one policy may share the windows of an override.
    const known = this.#byWindow.get(window);
    if (known?.scope === scope && known?.policy === policy && known?.version === version) return known!;
    const found = this.#findByName(decision, false);
    if (this.#byWindow.size < maxRemembered) this.#byWindow.set(window, found);
    return found;
  }

  /** The policy whose usage a request is, if it wants an event for each: the same for all such requests. */
  findEachPolicy(request: CheckRequest, epochMs: () => number): Policy | undefined {
    this.#follow();
    return this.#hasEach ? findApplying(this.#limiter.snapshot, request, epochMs, isEach) : undefined;
  }

  /** The limit of a policy that stands for it in an event of a request which another policy decided. */
  findFirst({ id, version }: Policy): CompiledLimit | undefined {
    return findLimit(this.#limiter.snapshot, id, version);
  }

  /** The subject that a limit counts a request for, as it may leave this process. */
  readKey(limit: CompiledLimit | undefined, policy: string | undefined, request: CheckRequest): string {
    if (limit === undefined) return this.#readGivenKey(policy, request);
    const values = readLimitValues(this.#limiter.snapshot, limit, request);
    const { by } = limit.source;
    for (let i = 0; i < values.length; i++) values[i] = publicSubject(by[i]!, values[i]!);
    return joinSubject(values);
  }

  /** A limit that a request brings along is the policy of its decision, by its name. */
  #readGivenKey(policy: string | undefined, { limits, dimensions = {} }: CheckRequest): string {
    const given = limits?.find(({ name }) => name === policy);
    if (given === undefined) return "";
    return joinSubject(
      given.by.map((name) => publicSubject(name, readDimension(dimensions, name, this.#ipv6PrefixBits))),
    );
  }

  #findByName({ policy, version, scope }: Decision, isGiven: boolean): DecidingLimit {
    const name = JSON.stringify([policy, version, scope, isGiven]);
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const isKnown = policy !== undefined && !isGiven;
    const compiled = isKnown && scope !== undefined ? this.#findLimit(policy, version, scope) : undefined;
    const events = compiled?.policy.events ?? (isKnown ? this.#findPolicy(policy)?.events : undefined) ?? "summary";
    const found = { name, policy, version, scope, events, compiled };
    if (this.#byName.size < maxRemembered) this.#byName.set(name, found);
    return found;
  }

  #findLimit(policy: string, version: number | undefined, scope: string): CompiledLimit | undefined {
    return findLimit(this.#limiter.snapshot, policy, version, scope);
  }

  /** For policies without limits. */
  #findPolicy(id: string): Policy | undefined {
    const { policies, fallback } = this.#limiter.snapshot.policySet;
    return policies.find((one) => one.id === id) ?? (fallback?.id === id ? fallback : undefined);
  }

  /** Forgets all limits when policies were replaced. */
  #follow(): void {
    const { snapshot } = this.#limiter;
    if (snapshot === this.#snapshot) return;
    this.#snapshot = snapshot;
    this.#byWindow.clear();
    this.#byName.clear();
    const { policies, fallback } = snapshot.policySet;
    this.#hasEach = policies.some(isEach) || (fallback !== undefined && isEach(fallback));
  }
}
