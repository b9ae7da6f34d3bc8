/** Holds the media type and the content of a file, as they are in a data URL. */
export interface DataUrlFile {
  /** The media type; empty if the data URL names none. */
  mimeType: string;
  /** The content in base64. */
  data: string;
}

/**
 * Splits a base64 data URL (RFC 2397) into media type and content; returns null for any other URL. Parameters of the
 * media type are dropped.
 */
export function splitDataUrl(url: string): DataUrlFile | null {
  const comma = url.slice(0, 1000).indexOf(',');
  const head = /^data:([^,;]*)(?:;[^,]*)?;base64$/iu.exec(url.slice(0, Math.max(0, comma)));
  if (!head) return null;
  return { mimeType: head[1] ?? '', data: url.slice(comma + 1) };
}

/** Returns the base64 data URL of a file. */
export function dataUrlOf({ mimeType, data }: DataUrlFile): string {
  return `data:${mimeType};base64,${data}`;
}
