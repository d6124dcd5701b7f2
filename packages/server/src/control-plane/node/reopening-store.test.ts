import { openPolicyStore, type PolicyStore, PolicyStoreUnavailable } from "@sluice/sql";
import { expect, it, vi } from "vitest";
import { createReopeningStore } from "./reopening-store.ts";

const where = { kind: "sqlite", where: "here" } as const;

it("opens the store on first use, once", async () => {
  const open = vi.fn(() => openPolicyStore({ url: "sqlite::memory:" }));
  const store = createReopeningStore({ ...where, open });
  const pulses = await Promise.all([store.readPulse(), store.readPulse()]);
  expect(pulses).toEqual([
    { generation: 0, killSwitch: undefined },
    { generation: 0, killSwitch: undefined },
  ]);
  expect(await store.change((change) => change.nextGeneration())).toBe(1);
  expect(open).toHaveBeenCalledTimes(1);
  await store.close();
  await expect(store.readPulse()).rejects.toThrow(PolicyStoreUnavailable);
});

it("says why it could not be opened, without trying each time, and opens when it can", async () => {
  const away = new PolicyStoreUnavailable("not up yet");
  const open = vi.fn<() => Promise<PolicyStore>>().mockRejectedValueOnce(away);
  const store = createReopeningStore({ ...where, open, everyMs: 3_600_000 });
  await expect(store.readPulse()).rejects.toBe(away);
  await expect(store.readPulse()).rejects.toBe(away);
  expect(open).toHaveBeenCalledTimes(1);
  open.mockImplementation(() => openPolicyStore({ url: "sqlite::memory:" }));
  await store.open();
  expect((await store.readPulse()).generation).toBe(0);
  await store.close();
});

it("closes a store that is being opened", async () => {
  let opened: PolicyStore | undefined;
  const open = async (): Promise<PolicyStore> => {
    opened = await openPolicyStore({ url: "sqlite::memory:" });
    return opened;
  };
  const store = createReopeningStore({ ...where, open });
  const opening = store.open();
  await store.close();
  await opening;
  await expect(opened?.readPulse()).rejects.toThrow("closed");
});
