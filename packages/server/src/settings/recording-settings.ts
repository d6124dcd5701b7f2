import { duration, path, type SettingEntry, text, whole } from "./setting-entry.ts";
import { readList, right, type SettingReading, wrong } from "./setting-readers.ts";

/** Recordings of what is decided, for `sluice simulate` and `sluice replay`. */
export class RecordingSettings {
  readonly record: SettingEntry<string | undefined> = path(
    "--record",
    "SLUICE_RECORD",
    "record every decision to this file from the start on, for sluice simulate; a file that exists is set aside",
  );
  readonly recordForMs: SettingEntry<number> = duration("--record-for", "SLUICE_RECORD_FOR", "how long to record", {
    from: "1s",
    to: "31d",
    fallback: "1h",
  });
  readonly recordBytes: SettingEntry<number> = whole(
    "--record-bytes",
    "SLUICE_RECORD_BYTES",
    "maximum size of a recording, compressed, in bytes",
    { from: 64 * 1024, to: 1024 ** 4, fallback: 1024 ** 3 },
  );
  readonly recordShare: SettingEntry<number> = {
    flag: "--record-share",
    env: "SLUICE_RECORD_SHARE",
    value: "<percent>",
    help: "share of subjects to record, such as 10%; a subject is recorded with all of its requests, or with none",
    fallback: 1,
    fallbackText: "100%",
    read: readPercent,
  };
  readonly recordShareBy: SettingEntry<string | undefined> = text(
    "--record-share-by",
    "SLUICE_RECORD_SHARE_BY",
    "dimension that names those subjects, such as tenant",
    { value: "<dimension>", pattern: /^[\w.-]{1,128}$/, expected: "the name of a dimension" },
  );
  readonly recordHash: SettingEntry<readonly string[]> = {
    flag: "--record-hash",
    env: "SLUICE_RECORD_HASH",
    value: "<names>",
    help: "dimensions whose values are recorded as hashes, by a random key that is kept nowhere, such as user,ip",
    fallback: [],
    fallbackText: "none",
    read: readList,
  };
  readonly recordings: SettingEntry<string | undefined> = path(
    "--recordings",
    "SLUICE_RECORDINGS",
    "folder for recordings that the control plane starts; without it, it starts none",
  );
  readonly recordingsBytes: SettingEntry<number> = whole(
    "--recordings-bytes",
    "SLUICE_RECORDINGS_BYTES",
    "maximum size of all recordings in that folder, in bytes",
    { from: 1024 ** 2, to: 1024 ** 4, fallback: 4 * 1024 ** 3 },
  );
  readonly recordingsRetentionMs: SettingEntry<number> = duration(
    "--recordings-retention",
    "SLUICE_RECORDINGS_RETENTION",
    "how long to keep recordings in that folder",
    { from: "1h", to: "366d", fallback: "7d" },
  );
}

/** `10%` or `0.1`. */
function readPercent(given: string): SettingReading<number> {
  const [, number = "", sign] = /^(\d+(?:\.\d+)?|\.\d+)\s*(%?)$/.exec(given) ?? [];
  const share = number === "" ? Number.NaN : Number(number) / (sign === "%" ? 100 : 1);
  return share > 0 && share <= 1 ? right(share) : wrong(given, "a share above 0 and up to 100%, such as 10% or 0.1");
}
