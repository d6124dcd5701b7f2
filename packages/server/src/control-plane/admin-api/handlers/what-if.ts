import { recording, recordingChange, recordingList, simulation, simulationList } from "@sluice/protocol/admin";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import type { AdminContext, AdminRequest } from "../route.ts";
import type { RecordingStartBody, SimulationRequestBody } from "../what-if-shapes.ts";

export async function listRecordings({ actor }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  return { status: 200, body: recordingList.render(await control.recordings.list(actor)) };
}

export async function startRecording(
  { actor, body, change }: AdminRequest<RecordingStartBody>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { for_ms: forMs, max_bytes: maxBytes, share_percent: sharePercent, share_by: shareBy, hash } = body;
  const started = await control.recordings.start(actor, { forMs, maxBytes, sharePercent, shareBy, hash }, change);
  return { status: 201, body: recordingChange.render(changed(change, { recording: started })) };
}

export async function getRecording({ actor, params }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  return { status: 200, body: recording.render(await control.recordings.get(actor, params.id!)) };
}

export async function stopRecording(
  { actor, params, change }: AdminRequest<unknown>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const stopped = await control.recordings.stop(actor, params.id!, change);
  return { status: 200, body: recordingChange.render(changed(change, { recording: stopped })) };
}

export async function deleteRecording(
  { actor, params, change }: AdminRequest,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const gone = await control.recordings.delete(actor, params.id!, change);
  return { status: 200, body: recordingChange.render(changed(change, { recording: gone })) };
}

export async function listSimulations({ actor }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  return { status: 200, body: simulationList.render({ items: await control.simulations.list(actor) }) };
}

export async function createSimulation(
  { actor, body }: AdminRequest<SimulationRequestBody>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { source, find_limit: findLimit, format, map, candidate, now } = body;
  const { log_base64: logBase64, ...rest } = source;
  const request = {
    source: { ...rest, ...(logBase64 !== undefined && { logBase64 }) },
    format,
    map,
    candidate,
    now,
    findLimit,
  };
  const created = await control.simulations.create(actor, request);
  return {
    status: 202,
    headers: { location: `/api/v1/simulations/${created.id}` },
    body: simulation.render(created),
  };
}

export async function getSimulation({ actor, params }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  return { status: 200, body: simulation.render(await control.simulations.get(actor, params.id!)) };
}

export async function deleteSimulation(
  { actor, params }: AdminRequest,
  { control }: AdminContext,
): Promise<HttpResponse> {
  return { status: 200, body: simulation.render(await control.simulations.delete(actor, params.id!)) };
}

/** These are of this node alone, and no part of a generation. */
function changed<Fields>({ dryRun = false }: AdminRequest["change"], fields: Fields) {
  return { dryRun, generation: undefined, warnings: [], ...fields };
}
