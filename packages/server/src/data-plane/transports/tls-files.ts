import { X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { SettingError } from "../../settings/parse-settings.ts";
import { readSettingFile } from "../../settings/read-setting-file.ts";
import type { Settings } from "../../settings/settings.ts";

/** Our certificate, and the CAs for clients' certificates, in PEM. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  readonly clientCa: string | undefined;
  /** When our certificate expires. */
  readonly validTo: Date;
}

/** Reads the files that settings name, and checks that they fit together. Throws a `SettingError` if they do not. */
export async function readTlsFiles(settings: Settings): Promise<TlsFiles> {
  const [cert = "", key = "", clientCa] = await Promise.all([
    readSettingFile("tlsCert", settings),
    readSettingFile("tlsKey", settings),
    readSettingFile("tlsClientCa", settings),
  ]);
  const [leaf] = certificatesIn("tlsCert", settings, cert);
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw new SettingError(["tlsCert", "tlsKey"], `${whyUnfit(error)} (${settings.tlsCert}, ${settings.tlsKey})`);
  }
  // Without a single CA, OpenSSL would fall back to those that come with Node, and accept half of the world.
  if (clientCa !== undefined) certificatesIn("tlsClientCa", settings, clientCa);
  return { cert, key, clientCa, validTo: leaf!.validToDate };
}

/** Every certificate in a file, which must have at least one. */
function certificatesIn(name: "tlsCert" | "tlsClientCa", settings: Settings, pem: string): readonly X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0)
    throw new SettingError(
      [name],
      `${settings[name]} contains no certificate; it should be in PEM (BEGIN CERTIFICATE)`,
    );
  return blocks.map((block, index) => {
    try {
      return new X509Certificate(block);
    } catch {
      throw new SettingError([name], `certificate ${index + 1} in ${settings[name]} cannot be read`);
    }
  });
}

function whyUnfit(error: unknown): string {
  const { code = "", message = "" } = error as NodeJS.ErrnoException;
  if (code === "ERR_OSSL_X509_KEY_VALUES_MISMATCH") return "the key does not belong to the certificate";
  if (/ENCRYPTED|BAD_PASSWORD|INTERRUPTED_OR_CANCELLED|BAD_DECRYPT/.test(code))
    return "the key is encrypted with a password; write it without one, readable by the server alone";
  return `certificate and key cannot be used (${message.replace(/^error:[^:]*:/, "")}); they should be in PEM`;
}
