import type { CheckRequest, Decision, Window } from "sluice";
import { renderWindow, type ShadowDenial } from "sluice/internal";

/** One denial, or several of the same kind, described by the newest of them. */
export interface SampledDenial {
  readonly request: CheckRequest;
  readonly decision: Decision;
  /** Set if the denial was not carried out, because its policy is in shadow mode. */
  readonly shadow: ShadowDenial | undefined;
  /** The dimensions that the limit counts by. */
  readonly by: readonly string[];
  /** Epoch milliseconds of the newest denial and of the oldest. */
  readonly atMs: number;
  readonly sinceMs: number;
  /** How many denials it stands for. */
  readonly denials: number;
  /** Whether these are of several subjects. */
  readonly mixed: boolean;
}

export interface DenialSamplesOptions {
  /** The dimensions that a limit counts by; undefined if it is not known. */
  readonly findBy: (policy: string, limit: string) => readonly string[] | undefined;
  /** The dimension whose subjects share what there is equally, as `tenant`. Undefined: there is none. */
  readonly shareBy?: string | undefined;
  /** Epoch milliseconds. */
  readonly nowMs: () => number;
  /** The most subjects that are recorded separately, until `take`. */
  readonly maxSubjects?: number | undefined;
  /** The most limits, each with every reason and window. */
  readonly maxLimits?: number | undefined;
  /** The most records of one subject, and the most of all subjects together beyond their first ones. */
  readonly maxRecords?: number | undefined;
  readonly maxMore?: number | undefined;
}

/**
 * A sample of the denials since the last `take`, whose counts add up to all of them. Of each subject the first few denials are
 * recorded one by one, and the rest as one record, which describes the newest. When there are too many subjects, limits share the
 * room equally, and so do the tenants of a limit: the one with the most subjects makes room for the others, and what has no room is recorded
 * for all subjects of the limit together. So neither a flood of denials nor made-up subjects hide the denials of others.
 *
 * Every check ends here: an allowed one costs two comparisons, and a denial no more than finding its subject.
 */
export class DenialSamples {
  readonly #options: DenialSamplesOptions;
  readonly #maxSubjects: number;
  readonly #maxLimits: number;
  readonly #maxRecords: number;
  readonly #maxMore: number;
  #limits = new Map<string, LimitDenials>();
  #byWindow = new Map<Window, LimitDenials>();
  #subjects = 0;
  #more = 0;
  #denials = 0;

  constructor(options: DenialSamplesOptions) {
    this.#options = options;
    this.#maxSubjects = options.maxSubjects ?? 40;
    this.#maxLimits = options.maxLimits ?? 40;
    this.#maxRecords = options.maxRecords ?? 5;
    this.#maxMore = options.maxMore ?? 60;
  }

  /** All denials that were counted, those in shadow mode included. Only grows. */
  get denials(): number {
    return this.#denials;
  }

  count(request: CheckRequest, decision: Decision): void {
    const { allowed, shadow } = decision;
    if (allowed && shadow.length === 0) return;
    // A preview takes nothing, and a replayed decision was counted before.
    if (decision.preview || decision.replayed) return;
    if (!allowed) this.#add(this.#findLimit(request, decision, undefined), request, decision, undefined);
    for (const denial of shadow) this.#add(this.#findLimit(request, decision, denial), request, decision, denial);
  }

  /** At most `maxSubjects + maxMore + maxLimits + 1` records. */
  take(): readonly SampledDenial[] {
    const limits = [...this.#limits.values()];
    this.#limits = new Map();
    this.#byWindow = new Map();
    this.#subjects = 0;
    this.#more = 0;
    return limits.flatMap(({ by, tenants, mixed }) => [
      ...[...tenants.values()].flatMap((subjects) => [...subjects.values()].flatMap((one) => readSubject(one, by))),
      ...(mixed === undefined ? [] : [{ ...mixed, by, mixed: true }]),
    ]);
  }

  #add(limit: LimitDenials, request: CheckRequest, decision: Decision, shadow: ShadowDenial | undefined): void {
    this.#denials += 1;
    const atMs = this.#options.nowMs();
    const { dimensions = {} } = request;
    const { shareBy } = this.#options;
    const tenant = shareBy === undefined ? "" : (dimensions[shareBy] ?? "");
    const name = subjectName(limit.by, dimensions);
    const subject = limit.tenants.get(tenant)?.get(name) ?? this.#addSubject(limit, tenant, name);
    if (subject === undefined) {
      limit.mixed = addTo(limit.mixed, request, decision, shadow, atMs);
      return;
    }
    const { first, newest } = subject;
    if (newest?.denials === 1 && first.length < this.#maxRecords - 1 && this.#more < this.#maxMore) {
      first.push(newest);
      this.#more += 1;
      subject.newest = undefined;
    }
    subject.newest = addTo(subject.newest, request, decision, shadow, atMs);
  }

  #findLimit(request: CheckRequest, decision: Decision, shadow: ShadowDenial | undefined): LimitDenials {
    const { window } = decision;
    const known = window === undefined || shadow !== undefined ? undefined : this.#byWindow.get(window);
    const { policy = "", scope = "", reason } = shadow ?? decision;
    // Limits may share a window: an override gives the same one to all that it covers.
    if (known?.reason === reason && known.scope === scope && known.policy === policy) return known;
    const windowName = window === undefined || shadow !== undefined ? "" : (window.name ?? renderWindow(window));
    const key = JSON.stringify([policy, scope, reason, windowName, shadow !== undefined]);
    let limit = this.#limits.get(key);
    if (limit === undefined) {
      // The last one is for all limits beyond the bound.
      if (this.#limits.size >= this.#maxLimits) return this.#findOther();
      limit = createLimitDenials({ policy, scope, reason }, this.#findBy(request, policy, scope));
      this.#limits.set(key, limit);
    }
    // Limits that requests bring along have a window each: they must not fill the map.
    if (window !== undefined && shadow === undefined && this.#byWindow.size < 2 * this.#maxLimits)
      this.#byWindow.set(window, limit);
    return limit;
  }

  #findOther(): LimitDenials {
    let limit = this.#limits.get("");
    if (limit === undefined) {
      limit = createLimitDenials({ policy: "", scope: "", reason: "" }, []);
      this.#limits.set("", limit);
    }
    return limit;
  }

  #findBy({ limits, dimensions = {} }: CheckRequest, policy: string, scope: string): readonly string[] {
    const given = limits?.find(({ name }) => name === scope)?.by;
    const by = given ?? this.#options.findBy(policy, scope) ?? scope.split(",");
    return by.filter((name) => dimensions[name] !== undefined);
  }

  /** Undefined if there is no room for the subject. */
  #addSubject(limit: LimitDenials, tenant: string, name: string): SubjectDenials | undefined {
    if (limit === this.#limits.get("") || !this.#makeRoom(limit, tenant)) return undefined;
    const subject: SubjectDenials = { first: [], newest: undefined };
    let subjects = limit.tenants.get(tenant);
    if (subjects === undefined) {
      subjects = new Map();
      limit.tenants.set(tenant, subjects);
    }
    subjects.set(name, subject);
    limit.size += 1;
    this.#subjects += 1;
    return subject;
  }

  /** Equal shares: if this limit has less than its own, another has more; and likewise this tenant within its limit. */
  #makeRoom(limit: LimitDenials, tenant: string): boolean {
    if (this.#subjects < this.#maxSubjects) return true;
    const limitShare = Math.floor(this.#maxSubjects / this.#limits.size);
    if (limit.size < limitShare) return this.#evict(largest(this.#limits.values(), ({ size }) => size));
    const { tenants } = limit;
    const own = tenants.get(tenant)?.size ?? 0;
    const tenantShare = Math.floor(limitShare / (tenants.size + (own === 0 ? 1 : 0)));
    return own < tenantShare && this.#evict(limit);
  }

  /** The oldest subject of the tenant that has most, whose denials join those of several subjects. */
  #evict(limit: LimitDenials | undefined): boolean {
    if (limit === undefined) return false;
    const [tenant, subjects] = largest(limit.tenants, ([, { size }]) => size) ?? [];
    const [name, subject] = subjects?.entries().next().value ?? [];
    if (tenant === undefined || subjects === undefined || name === undefined || subject === undefined) return false;
    subjects.delete(name);
    if (subjects.size === 0) limit.tenants.delete(tenant);
    limit.size -= 1;
    this.#subjects -= 1;
    this.#more -= subject.first.length;
    for (const one of readRecords(subject)) limit.mixed = join(limit.mixed, one);
    return true;
  }
}

/** The denials by one limit, for one reason and one window. */
interface LimitDenials {
  readonly policy: string;
  readonly scope: string;
  readonly reason: string;
  readonly by: readonly string[];
  /** Subjects by tenant, in the order in which they were first denied. */
  readonly tenants: Map<string, Map<string, SubjectDenials>>;
  /** How many subjects there are. */
  size: number;
  /** Denials of subjects that have no records. */
  mixed: Recorded | undefined;
}

interface SubjectDenials {
  /** The first few denials, one by one. */
  readonly first: Recorded[];
  /** Those that follow, together. */
  newest: Recorded | undefined;
}

interface Recorded {
  request: CheckRequest;
  decision: Decision;
  shadow: ShadowDenial | undefined;
  atMs: number;
  sinceMs: number;
  denials: number;
}

function createLimitDenials(
  name: Pick<LimitDenials, "policy" | "scope" | "reason">,
  by: readonly string[],
): LimitDenials {
  return { ...name, by, tenants: new Map(), size: 0, mixed: undefined };
}

function subjectName(by: readonly string[], dimensions: Readonly<Record<string, string>>): string {
  if (by.length === 1) return dimensions[by[0]!] ?? "";
  return JSON.stringify(by.map((name) => dimensions[name] ?? null));
}

function addTo(
  recorded: Recorded | undefined,
  request: CheckRequest,
  decision: Decision,
  shadow: ShadowDenial | undefined,
  atMs: number,
): Recorded {
  if (recorded === undefined) return { request, decision, shadow, atMs, sinceMs: atMs, denials: 1 };
  recorded.request = request;
  recorded.decision = decision;
  recorded.shadow = shadow;
  recorded.atMs = atMs;
  recorded.denials += 1;
  return recorded;
}

function join(recorded: Recorded | undefined, other: Recorded): Recorded {
  if (recorded === undefined) return { ...other };
  const newer = other.atMs >= recorded.atMs ? other : recorded;
  return {
    ...newer,
    sinceMs: Math.min(recorded.sinceMs, other.sinceMs),
    denials: recorded.denials + other.denials,
  };
}

function readRecords({ first, newest }: SubjectDenials): readonly Recorded[] {
  return newest === undefined ? first : [...first, newest];
}

function readSubject(subject: SubjectDenials, by: readonly string[]): readonly SampledDenial[] {
  return readRecords(subject).map((recorded) => ({ ...recorded, by, mixed: false }));
}

function largest<T>(all: Iterable<T>, size: (one: T) => number): T | undefined {
  let found: T | undefined;
  for (const one of all) if (found === undefined || size(one) > size(found)) found = one;
  return found;
}
