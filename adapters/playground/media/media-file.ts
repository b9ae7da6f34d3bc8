import { splitDataUrl } from '../../../lib/data-url.ts';

/** Holds an image or a recording, which is sent with tasks or a chat message. */
export interface PickedFile {
  name: string;
  kind: 'image' | 'audio';
  /** The whole file, as a `data:` URL in base64. */
  url: string;
}

/**
 * Reads a file that the user has chosen. Throws an `Error` if its type is neither an image nor a recording, or if it
 * cannot be read.
 */
export async function readPickedFile(file: File): Promise<PickedFile> {
  const kind = (['image', 'audio'] as const).find((one) => file.type.startsWith(`${one}/`));
  if (!kind) throw new Error(`${file.name} is neither an image nor a recording. Choose a JPEG, PNG, WAV or MP3.`);
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  return { name: file.name, kind, url };
}

/** Returns a copy whose `url` has a placeholder for the content, which would be too long to display. */
export function withoutContent(media: PickedFile): PickedFile {
  return { ...media, url: `${media.url.slice(0, media.url.indexOf(',') + 1)}BASE64_OF_${media.name}` };
}

/** Returns the member of a body of `POST /v1/tasks` that contains a file: `images` or `audio`. */
export function tasksMedia({ kind, url }: PickedFile) {
  const input = base64Input(url);
  return kind === 'image' ? { images: [input] } : { audio: [input] };
}

/**
 * Returns the member `input` of a body of `POST /v1/decisions`: a user message with a file, then the text if there is
 * any.
 */
export function decisionsInput({ kind, url }: PickedFile, text: string) {
  const part = kind === 'image' ? { type: 'input_image', image_url: url } : { type: 'input_audio', audio_url: url };
  return [{ role: 'user', content: [part, ...(text === '' ? [] : [{ type: 'input_text', text }])] }];
}

/**
 * Returns the content of a message of `POST /v1/chat/completions`: a text, or a file and then the text if there is any.
 */
export function chatContent(text: string, media: PickedFile | undefined) {
  if (!media) return text;
  const { kind, url } = media;
  const part =
    kind === 'image' ? { type: 'image_url', image_url: { url } } : { type: 'audio', audio: base64Input(url) };
  return [part, ...(text === '' ? [] : [{ type: 'text', text }])];
}

function base64Input(url: string) {
  const { mimeType, data } = splitDataUrl(url) ?? { mimeType: '', data: '' };
  return { type: 'base64', mime_type: mimeType, data } as const;
}
