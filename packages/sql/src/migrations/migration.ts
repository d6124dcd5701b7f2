/** What turns one schema version into the next. */
export interface Migration {
  /** Counts up from 1, without gaps. */
  readonly version: number;
  /**
   * Statements that PostgreSQL, CockroachDB and SQLite carry out. `text` is what a text is declared as. CockroachDB carries them out
   * one by one, and more than once where a node ended in the middle or several begin together: of each, the second time finds what
   * it makes and fails for that, or changes nothing.
   */
  statements(text: string): readonly string[];
}
