export { Any } from "./generated/google/protobuf/any.ts";
export {
  BadRequest,
  BadRequest_FieldViolation,
  ErrorInfo,
} from "./generated/google/rpc/error_details.ts";
export { Status } from "./generated/google/rpc/status.ts";
