/**
 * Every form of statement that the policy store sends, with the CockroachDB rule that accepts it. `name` is any name,
 * `$` a parameter, `0` a number; [ ] is optional; < > is one of the parts below. Rules are those of its grammar
 * (`docs/generated/sql/bnf` in its repository, `pkg/sql/parser/sql.y`), pages are of its documentation, at
 * https://www.cockroachlabs.com/docs/stable/.
 */
export interface SqlForm {
  readonly form: string;
  readonly rule: string;
  readonly page: string;
  /** Set if the form goes to PostgreSQL alone, or if refusing it has a consequence: says which. */
  readonly not?: string;
}

export interface SqlPart extends SqlForm {
  readonly part: string;
}

const postgresAlone = "sent to no server that says it is CockroachDB";

export const statementForms: readonly SqlForm[] = [
  {
    form: "select <column> from name [where <condition>] [group by <name>] [order by <order>] [limit $] [offset $] [for update]",
    rule: "select_no_parens, simple_select_clause, sort_clause, select_limit: limit_clause offset_clause, for_locking_clause",
    page: "select-clause, order-by, limit-offset, select-for-update",
  },
  {
    form: "select <column> from name inner join name on name . name = name . name where <condition> group by <name> [order by <order>] [limit $]",
    rule: "joined_table: table_ref opt_join_type JOIN table_ref join_qual, group_clause",
    page: "joins, select-clause",
  },
  {
    form: "select <column> from name inner join name on name . name = name . name left join name on name . name = name . name and name . name = name . name where <condition> group by <column>",
    rule: "joined_table: table_ref opt_join_type JOIN table_ref join_qual, join_type: LEFT, a_expr AND a_expr",
    page: "joins, select-clause",
  },
  {
    form: "insert into name ( <name> ) select <column> from name where <condition> group by <name> on conflict ( <name> ) do update set <assignment>",
    rule: "insert_stmt, insert_rest: '(' insert_column_list ')' select_stmt, on_conflict",
    page: "insert (from a SELECT statement)",
  },
  {
    form: "select <now> as name",
    rule: "target_elem: a_expr AS target_name; from_clause is optional",
    page: "select-clause",
  },
  { form: "select version ( ) as name", rule: "func_application", page: "functions-and-operators" },
  { form: "select 0", rule: "simple_select_clause", page: "select-clause" },
  { form: "select pg_notify ( $ , $ ) as name", rule: "none", page: "none", not: postgresAlone },
  { form: "listen name", rule: "none", page: "none", not: "refused, which is logged, and nodes poll instead" },
  {
    form: "insert into name ( <name> ) values <row> [on conflict [( <name> )] do nothing] [returning <name>]",
    rule: "insert_stmt, values_clause, on_conflict, returning_clause",
    page: "insert",
  },
  {
    form: "insert into name ( <name> ) values <row> on conflict ( <name> ) do update set <assignment> [where <condition>] [returning <name>]",
    rule: "insert_stmt, on_conflict: DO UPDATE SET set_clause_list opt_where_clause",
    page: "insert",
  },
  {
    form: "update name set <assignment> where <condition>",
    rule: "update_stmt, single_set_clause, opt_where_clause",
    page: "update",
  },
  { form: "delete from name where <condition>", rule: "delete_stmt, opt_where_clause", page: "delete" },
  {
    form: "create table [if not exists] name ( <definition> )",
    rule: "create_table_stmt, table_elem_list",
    page: "create-table, online-schema-changes (each stands alone)",
  },
  {
    form: "create [unique] index name on name ( <name> ) [where <condition>]",
    rule: "create_index_stmt, opt_unique, index_params, opt_where_clause",
    page: "create-index, partial-indexes",
  },
  {
    form: "alter table name add column name <type> [not null default 0]",
    rule: "alter_onetable_stmt, alter_table_cmd: ADD COLUMN column_table_def",
    page: "alter-table, online-schema-changes (each stands alone)",
  },
  {
    form: "begin isolation level read committed",
    rule: "legacy_begin_stmt, transaction_mode: ISOLATION LEVEL iso_level",
    page: "read-committed (runs as SERIALIZABLE if a cluster has turned it off)",
  },
  {
    form: "begin isolation level repeatable read , read only",
    rule: "transaction_mode_list with opt_comma, iso_level, transaction_read_mode",
    page: "begin-transaction, transactions (never below the requested level: SERIALIZABLE is one view of one moment as well)",
  },
  {
    form: "set local <timeout> = 0",
    rule: "set_local_stmt, generic_set",
    page: "set-vars, session-variables (whole milliseconds)",
  },
  { form: "commit", rule: "commit_stmt", page: "commit-transaction" },
  { form: "rollback", rule: "rollback_stmt", page: "rollback-transaction" },
];

/** Parts that are repeated, and their separators. */
export const separators: Readonly<Record<string, string>> = {
  column: ",",
  name: ",",
  row: ",",
  value: ",",
  assignment: ",",
  order: ",",
  definition: ",",
  condition: "and|or",
};

export const partForms: readonly SqlPart[] = [
  {
    part: "name",
    form: "name",
    rule: "name: identifier, unreserved_keyword, col_name_keyword",
    page: "keywords-and-identifiers",
  },
  { part: "column", form: "name", rule: "target_elem", page: "select-clause" },
  { part: "column", form: "name . name", rule: "target_elem, column_path", page: "select-clause" },
  { part: "column", form: "name as name", rule: "target_elem: a_expr AS target_name", page: "select-clause" },
  {
    part: "column",
    form: "max ( name ) as name",
    rule: "target_elem, func_application",
    page: "functions-and-operators",
  },
  {
    part: "column",
    form: "count ( * ) as name",
    rule: "target_elem, func_application: func_name '(' '*' ')'",
    page: "functions-and-operators",
  },
  {
    part: "column",
    form: "cast ( sum ( name ) as bigint ) as name",
    rule: "target_elem, func_expr_common_subexpr: CAST, func_application",
    page: "functions-and-operators (a sum of INT is a DECIMAL there as well)",
  },
  {
    part: "column",
    form: "cast ( max ( name ) as bigint ) as name",
    rule: "target_elem, func_expr_common_subexpr: CAST, func_application",
    page: "functions-and-operators",
  },
  {
    part: "column",
    form: "cast ( $ as bigint ) as name",
    rule: "target_elem, func_expr_common_subexpr: CAST",
    page: "scalar-expressions",
  },
  {
    part: "order",
    form: "name",
    rule: "sortby; names of columns without NULL, which sorts first there",
    page: "order-by",
  },
  {
    part: "order",
    form: "cast ( sum ( name ) as bigint ) desc",
    rule: "sortby: a_expr opt_asc_desc; sums of columns without NULL",
    page: "order-by",
  },
  { part: "order", form: "name desc", rule: "sortby, opt_asc_desc", page: "order-by" },
  { part: "row", form: "( <value> )", rule: "values_clause, expr_list", page: "selection-queries" },
  { part: "value", form: "$", rule: "d_expr: PLACEHOLDER", page: "scalar-expressions" },
  { part: "value", form: "0", rule: "d_expr: ICONST", page: "sql-constants" },
  { part: "value", form: "<now>", rule: "a_expr", page: "scalar-expressions" },
  {
    part: "value",
    form: "<now> + cast ( $ as bigint )",
    rule: "a_expr '+' a_expr, func_expr_common_subexpr: CAST",
    page: "scalar-expressions",
  },
  {
    part: "now",
    form: "cast ( extract ( epoch from clock_timestamp ( ) ) * 0 as bigint )",
    rule: "func_expr_common_subexpr: CAST, special_function: EXTRACT, extract_arg: identifier",
    page: "functions-and-operators (clock_timestamp; extract is a FLOAT there, which a cast rounds)",
  },
  { part: "assignment", form: "name = $", rule: "single_set_clause", page: "update" },
  { part: "assignment", form: "name = name + 0", rule: "single_set_clause, a_expr '+' a_expr", page: "update" },
  {
    part: "assignment",
    form: "name = name . name + excluded . name",
    rule: "single_set_clause, a_expr '+' a_expr, column_path",
    page: "insert",
  },
  {
    part: "assignment",
    form: "name = case when excluded . name > name . name then excluded . name else name . name end",
    rule: "single_set_clause, case_expr, when_clause, case_default, a_expr '>' a_expr, column_path",
    page: "scalar-expressions (searched CASE)",
  },
  { part: "assignment", form: "name = excluded . name", rule: "single_set_clause, column_path", page: "insert" },
  { part: "condition", form: "name = $", rule: "a_expr '=' a_expr", page: "scalar-expressions" },
  {
    part: "condition",
    form: "substr ( name , 0 , $ ) = $",
    rule: "a_expr '=' a_expr, func_application",
    page: "functions-and-operators (substr; characters count from 1)",
  },
  { part: "condition", form: "name . name <> $", rule: "a_expr NOT_EQUALS a_expr, column_path", page: "insert" },
  {
    part: "condition",
    form: "not exists ( select name . name from name as name where name . name = name . name and name . name = name . name and name . name = name . name )",
    rule: "a_expr: NOT a_expr, d_expr: EXISTS select_with_parens, table_ref: relation_expr opt_alias_clause",
    page: "subqueries, scalar-expressions (correlated EXISTS)",
  },
  {
    part: "condition",
    form: "( name < $ or name < $ )",
    rule: "d_expr: '(' a_expr ')', a_expr OR a_expr",
    page: "scalar-expressions",
  },
  { part: "condition", form: "name = 0", rule: "a_expr '=' a_expr", page: "partial-indexes" },
  { part: "condition", form: "name <> $", rule: "a_expr NOT_EQUALS a_expr", page: "scalar-expressions" },
  { part: "condition", form: "name < $", rule: "a_expr '<' a_expr", page: "scalar-expressions" },
  { part: "condition", form: "name > $", rule: "a_expr '>' a_expr", page: "scalar-expressions" },
  { part: "condition", form: "name >= $", rule: "a_expr GREATER_EQUALS a_expr", page: "scalar-expressions" },
  {
    part: "condition",
    form: "( name >= $ and name < $ [and name = $] )",
    rule: "d_expr: '(' a_expr ')', a_expr AND a_expr",
    page: "scalar-expressions",
  },
  {
    part: "condition",
    form: "( name >= $ and name < $ and ( name > $ or ( name = $ and name > $ ) ) )",
    rule: "d_expr: '(' a_expr ')', a_expr AND a_expr, a_expr OR a_expr",
    page: "scalar-expressions",
  },
  { part: "condition", form: "name is null", rule: "a_expr IS NULL", page: "null-handling, partial-indexes" },
  { part: "condition", form: "name is not null", rule: "a_expr IS NOT NULL", page: "null-handling" },
  {
    part: "condition",
    form: "name in ( <value> )",
    rule: "a_expr IN in_expr: expr_tuple1_ambiguous",
    page: "scalar-expressions",
  },
  {
    part: "condition",
    form: "name in ( select name from name where name < $ limit $ )",
    rule: "a_expr IN in_expr: select_with_parens",
    page: "subqueries",
  },
  {
    part: "condition",
    form: "name in ( select name from name where name = $ )",
    rule: "a_expr IN in_expr: select_with_parens",
    page: "subqueries",
  },
  {
    part: "condition",
    form: "name in ( select name from name where name = $ and name not in ( <value> ) )",
    rule: "a_expr IN in_expr: select_with_parens, a_expr NOT IN in_expr",
    page: "subqueries",
  },
  {
    part: "condition",
    form: "name in ( select name from name where name = $ and name = $ and name >= $ and name < $ )",
    rule: "a_expr IN in_expr: select_with_parens",
    page: "subqueries",
  },
  { part: "condition", form: "name . name = excluded . name", rule: "column_path", page: "insert" },
  { part: "condition", form: "name . name < excluded . name", rule: "a_expr '<' a_expr", page: "insert" },
  { part: "condition", form: "name . name <= excluded . name", rule: "a_expr LESS_EQUALS a_expr", page: "insert" },
  { part: "condition", form: "name . name > excluded . name + 0", rule: "a_expr '+' a_expr", page: "insert" },
  {
    part: "definition",
    form: "name <type> [not null] [primary key]",
    rule: "column_table_def, col_qualification_elem",
    page: "create-table",
  },
  { part: "definition", form: "primary key ( <name> )", rule: "constraint_elem: PRIMARY KEY", page: "primary-key" },
  { part: "type", form: "bigint", rule: "numeric: BIGINT", page: "int" },
  { part: "type", form: "integer", rule: "numeric: INTEGER", page: "int (64 bits there, and read as such)" },
  { part: "type", form: "text", rule: "general_type_name", page: "string (an alias of STRING, compared by its bytes)" },
  { part: "type", form: 'text collate "C"', rule: "none", page: "none", not: postgresAlone },
  { part: "timeout", form: "statement_timeout", rule: "var_name", page: "session-variables" },
  { part: "timeout", form: "idle_in_transaction_session_timeout", rule: "var_name", page: "session-variables" },
];

/** Words that CockroachDB reserves and PostgreSQL does not (`cockroachdb_extra_reserved_keyword`, `type_func_name_crdb_extra_keyword`). */
export const reservedNames: ReadonlySet<string> = new Set(["index", "nothing", "family"]);
