/** Bytes that a file in the repository may have: everybody who clones it downloads every version of it. */
const LIMIT = 1_000_000;

/** Files that may be larger: the weights of the model that ships. */
const LARGE: ReadonlySet<string> = new Set(['models/starter/onnx/model_q4f16.onnx']);

/** Returns the fault of a file over 1 MB, as a list; an empty one for other files. */
export function sizeViolation(file: string, bytes: number): string[] {
  if (bytes <= LIMIT || LARGE.has(file)) return [];
  return [`${file}: has ${bytes} bytes; a file may have ${LIMIT}. Generate it, or fetch it when it is needed`];
}
