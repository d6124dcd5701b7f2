import { constants } from "node:crypto";
import type { SecureContextOptions, TlsOptions } from "node:tls";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { type FollowedFiles, followFiles } from "../../settings/follow-files.ts";
import type { Settings } from "../../settings/settings.ts";
import { type ClientNames, parseClientNames } from "./tls-client-names.ts";
import { readTlsFiles, type TlsFiles } from "./tls-files.ts";

/** What doors need for TLS. Certificates change while it runs. */
export interface Tls {
  /** For a server that is created now. */
  readonly options: TlsOptions;
  /** Undefined: every client with a valid certificate, or every client if none is required. */
  readonly clientNames: ClientNames | undefined;
  /** Called with certificates for new connections. Returns a function that unsubscribes. */
  onChange(listener: (context: SecureContextOptions) => void): () => void;
  /** Reads the files again now. */
  reload(): Promise<void>;
  close(): void;
}

export interface TlsSources {
  readonly settings: Settings;
  readonly log: Logger;
  /** How often to check the files for changes. */
  readonly pollMs?: number | undefined;
}

const dayMs = 24 * 60 * 60 * 1000;
const warnAheadMs = 14 * dayMs;

/** Undefined if settings name no certificate. Throws a `SettingError` if one cannot be used. */
export async function createTls({ settings, log, pollMs }: TlsSources): Promise<Tls | undefined> {
  const { tlsCert, tlsKey, tlsClientCa, tlsClientNames } = settings;
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  const clientNames = tlsClientNames.length === 0 ? undefined : parseClientNames(tlsClientNames);
  const listeners = new Set<(context: SecureContextOptions) => void>();
  const paths = [tlsCert, tlsKey, ...(tlsClientCa === undefined ? [] : [tlsClientCa])];
  const files: FollowedFiles<TlsFiles> = await followFiles({
    paths,
    pollMs,
    load: () => readTlsFiles(settings),
    onChange(loaded): void {
      const changed =
        loaded.cert !== current.cert || loaded.key !== current.key || loaded.clientCa !== current.clientCa;
      if (!changed) return;
      current = loaded;
      const context = contextOptions(loaded);
      for (const listener of listeners) listener(context);
      log.info("tls.reloaded", { certificate: tlsCert, validTo: loaded.validTo.toISOString() });
      warnOfEnd(loaded);
    },
    onRefused: (error) =>
      log.error("tls.reload_failed", {
        certificate: tlsCert,
        reason: error instanceof Error ? error.message : String(error),
      }),
  });
  let current: TlsFiles = files.first;
  warnOfEnd(current);
  const watch = setInterval(() => warnOfEnd(current), dayMs).unref();

  function warnOfEnd({ validTo }: TlsFiles): void {
    const leftMs = validTo.getTime() - Date.now();
    const fields = { certificate: tlsCert, validTo: validTo.toISOString() };
    if (leftMs <= 0) log.warn("tls.certificate_expired", fields);
    else if (leftMs < warnAheadMs) log.warn("tls.certificate_expires_soon", fields);
  }

  return {
    get options(): TlsOptions {
      return { ...contextOptions(current), requestCert: tlsClientCa !== undefined, rejectUnauthorized: true };
    },
    clientNames,
    onChange(listener): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    reload: () => files.reload(),
    close(): void {
      clearInterval(watch);
      files.close();
    },
  };
}

function contextOptions({ cert, key, clientCa }: TlsFiles): SecureContextOptions {
  return {
    cert,
    key,
    minVersion: "TLSv1.2",
    honorCipherOrder: true,
    ...(clientCa === undefined
      ? undefined
      : {
          ca: clientCa,
          // A client shows its certificate on every connection: a resumed session is trusted without one, as of when it
          // began.
          secureOptions: constants.SSL_OP_NO_TICKET,
        }),
  };
}
