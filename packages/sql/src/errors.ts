/** The store is unavailable. The request itself was fine. */
export class PolicyStoreUnavailable extends Error {
  override readonly name = "PolicyStoreUnavailable";
  /** Whether the change may have been made anyway, because only the answer was lost. */
  readonly maybeDone: boolean;

  constructor(message: string, { maybeDone = false }: { readonly maybeDone?: boolean } = {}) {
    super(message);
    this.maybeDone = maybeDone;
  }
}

/** A later version of Sluice made the schema. */
export class SchemaTooNew extends Error {
  override readonly name = "SchemaTooNew";
  /** The version of the schema. */
  readonly found: number;
  /** The newest that this program knows. */
  readonly known: number;

  constructor(where: string, found: number, known: number) {
    super(
      `the policy store ${where} has schema version ${found}, and this version of Sluice knows versions up to ${known}; ` +
        "start the version of Sluice that upgraded it, or a later one, or restore a backup from before the upgrade",
    );
    this.found = found;
    this.known = known;
  }
}

/** Another policy has the same scope, value, endpoint and tier. */
export class RuleTaken extends Error {
  override readonly name = "RuleTaken";
  readonly policy: string;

  constructor(policy: string) {
    super(`policy ${policy} has the same scope, value, endpoint and tier`);
    this.policy = policy;
  }
}

/** Another token that is in use has the same name. */
export class TokenNameTaken extends Error {
  override readonly name = "TokenNameTaken";
}

/** The policy has a version of this number, and versions never change. */
export class VersionTaken extends Error {
  override readonly name = "VersionTaken";
}

/** A field has a value that cannot be stored unchanged. */
export class UnstorableValue extends Error {
  override readonly name = "UnstorableValue";
  readonly field: string;

  constructor(field: string, why: string) {
    super(`${field} ${why}`);
    this.field = field;
  }
}
