/** One step from a schema version to the next. */
export interface Migration {
  /** Counts up from 1, without gaps. */
  readonly version: number;
  /**
   * Statements that PostgreSQL, CockroachDB and SQLite accept. `text` is the type of texts. CockroachDB runs them one by one, and
   * again if a node stopped in the middle or several start together: run twice, a statement fails because its object exists, or
   * changes nothing.
   */
  statements(text: string): readonly string[];
}
