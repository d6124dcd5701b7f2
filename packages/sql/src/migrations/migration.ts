/** What turns one schema version into the next. */
export interface Migration {
  /** Counts up from 1, without gaps. */
  readonly version: number;
  /** Statements that PostgreSQL, CockroachDB and SQLite carry out. `text` is what a text is declared as. */
  statements(text: string): readonly string[];
}
