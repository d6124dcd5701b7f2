export { type FileDescriptor, fileDescriptors } from "./generated/file-descriptors.ts";
export {
  ErrorResponse,
  ExtensionNumberResponse,
  ExtensionRequest,
  FileDescriptorResponse,
  ListServiceResponse,
  ServerReflectionDefinition,
  ServerReflectionRequest,
  ServerReflectionResponse,
  ServiceResponse,
} from "./generated/grpc/reflection/v1/reflection.ts";
