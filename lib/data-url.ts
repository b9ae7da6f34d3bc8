/** Holds a file as a data URL carries it. */
export interface DataUrlFile {
  mimeType: string;
  /** The content in base64. */
  data: string;
}

/** Splits a base64 data URL (RFC 2397) into media type and data; returns null for any other address. */
export function splitDataUrl(url: string): DataUrlFile | null {
  const comma = url.slice(0, 1000).indexOf(',');
  const head = /^data:([^,;]*)(?:;[^,]*)?;base64$/iu.exec(url.slice(0, Math.max(0, comma)));
  if (!head) return null;
  return { mimeType: head[1] ?? '', data: url.slice(comma + 1) };
}

/** Returns a file as a data URL. */
export function dataUrlOf({ mimeType, data }: DataUrlFile): string {
  return `data:${mimeType};base64,${data}`;
}
