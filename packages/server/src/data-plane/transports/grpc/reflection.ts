import { status } from "@grpc/grpc-js";
import {
  type FileDescriptor,
  fileDescriptors,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
} from "@sluice/protocol/reflection";

const byName = new Map(fileDescriptors.map((file) => [file.name, file]));
const bySymbol = new Map(fileDescriptors.flatMap((file) => file.symbols.map((symbol) => [symbol, file] as const)));
const serviceNames = fileDescriptors.flatMap(({ services }) => services).sort();

type Answer = Partial<ServerReflectionResponse>;

/** Answers a question about our .proto files, of which none has extensions. */
export function describe(request: ServerReflectionRequest): ServerReflectionResponse {
  return {
    fileDescriptorResponse: undefined,
    allExtensionNumbersResponse: undefined,
    listServicesResponse: undefined,
    errorResponse: undefined,
    ...answerTo(request),
    validHost: request.host,
    originalRequest: request,
  };
}

function answerTo(request: ServerReflectionRequest): Answer {
  if (request.listServices !== undefined)
    return { listServicesResponse: { service: serviceNames.map((name) => ({ name })) } };
  if (request.fileByFilename !== undefined) return filesAnswer(byName.get(request.fileByFilename), "file");
  if (request.fileContainingSymbol !== undefined)
    return filesAnswer(bySymbol.get(request.fileContainingSymbol), "symbol");
  if (request.allExtensionNumbersOfType !== undefined && bySymbol.has(request.allExtensionNumbersOfType)) {
    const baseTypeName = request.allExtensionNumbersOfType;
    return { allExtensionNumbersResponse: { baseTypeName, extensionNumber: [] } };
  }
  if (request.allExtensionNumbersOfType !== undefined || request.fileContainingExtension !== undefined)
    return refusal(status.NOT_FOUND, "there is no such extension or type");
  return refusal(status.INVALID_ARGUMENT, "the request asks for nothing that is known here");
}

/** A file, and behind it all that it imports. */
function filesAnswer(file: FileDescriptor | undefined, what: string): Answer {
  if (file === undefined) return refusal(status.NOT_FOUND, `there is no such ${what}`);
  const found = new Set<FileDescriptor>();
  const visit = (one: FileDescriptor | undefined): void => {
    if (one === undefined || found.has(one)) return;
    found.add(one);
    for (const name of one.imports) visit(byName.get(name));
  };
  visit(file);
  const fileDescriptorProto = [...found].map(({ base64 }) => Buffer.from(base64, "base64"));
  return { fileDescriptorResponse: { fileDescriptorProto } };
}

function refusal(errorCode: status, errorMessage: string): Answer {
  return { errorResponse: { errorCode, errorMessage } };
}
