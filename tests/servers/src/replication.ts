import type { TestServer } from "./test-server.ts";

/** `master` or `slave`, in the server's words. */
export async function readRole(server: TestServer): Promise<unknown> {
  return (await askRole(server))[0];
}

/** Whether it is a replica that has its primary's data and receives every change. */
export async function isReplicating(server: TestServer): Promise<boolean> {
  const [role, , , link] = await askRole(server);
  return role === "slave" && link === "connected";
}

async function askRole(server: TestServer): Promise<readonly unknown[]> {
  return (await server.command("ROLE")) as readonly unknown[];
}
