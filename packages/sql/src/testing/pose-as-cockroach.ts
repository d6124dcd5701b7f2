/** A PostgreSQL, and a superuser of it. */
export interface PostgresToPose {
  readonly url: string;
  psql(statements: string, url?: string): Promise<string>;
}

let databases = 0;

/**
 * A database on a real PostgreSQL that calls itself CockroachDB. Like CockroachDB it compares texts by their bytes and
 * refuses NOTIFY, columns with the collation "C", and schema changes inside of a transaction. Resolves with its URL.
 */
export async function poseAsCockroach(server: PostgresToPose): Promise<string> {
  databases += 1;
  const name = `as_cockroach_${databases}`;
  const url = server.url.replace(/\/postgres$/, `/${name}`);
  await server.psql(`create database ${name} template template0 encoding 'UTF8' locale_provider libc locale 'C'`);
  await server.psql(disguise, url);
  // Functions in this schema take precedence over PostgreSQL's.
  await server.psql(`alter database ${name} set search_path = public, pg_catalog`);
  return url;
}

/** If a statement is a whole transaction, both begin at the same time. */
const disguise = `
  create function version() returns text language sql as $$ select 'CockroachDB CCL v25.2.0 (a PostgreSQL in disguise)' $$;

  create function pg_notify(text, text) returns void language plpgsql as $$ begin
    raise exception 'unknown function: pg_notify()' using errcode = '42883';
  end $$;

  create function refuse_in_transactions() returns event_trigger language plpgsql as $$ begin
    if transaction_timestamp() <> statement_timestamp() then
      raise exception 'explicit transaction involving a schema change needs to be SERIALIZABLE' using errcode = '0A000';
    end if;
  end $$;
  create event trigger refuse_in_transactions on ddl_command_start execute function refuse_in_transactions();

  create function refuse_collations() returns event_trigger language plpgsql as $$ begin
    if exists (select from information_schema.columns where table_name like 'sluice_%' and collation_name is not null) then
      raise exception 'invalid locale C: language: tag is not well-formed' using errcode = '22023';
    end if;
  end $$;
  create event trigger refuse_collations on ddl_command_end execute function refuse_collations();
`;
