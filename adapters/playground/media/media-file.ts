import { splitDataUrl } from '../../../lib/data-url.ts';

/** Holds an image or a recording that tasks or a message of a chat are about. */
export interface MediaFile {
  name: string;
  kind: 'image' | 'audio';
  /** The whole file, as a `data:` URL in base64. */
  url: string;
}

/** Reads a file that the user has chosen. Throws if it is neither an image nor a recording. */
export async function readMedia(file: File): Promise<MediaFile> {
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

/** Returns the same file with a placeholder for its content, which would be too long to read. */
export function withoutContent(media: MediaFile): MediaFile {
  return { ...media, url: `${media.url.slice(0, media.url.indexOf(',') + 1)}BASE64_OF_${media.name}` };
}

/** Returns the member of `POST /v1/tasks` with a file. */
export function tasksMedia({ kind, url }: MediaFile) {
  const input = base64Input(url);
  return kind === 'image' ? { images: [input] } : { audio: [input] };
}

/** Returns the input of `POST /v1/decisions` with a file before the text. */
export function decisionsInput({ kind, url }: MediaFile, text: string) {
  const part = kind === 'image' ? { type: 'input_image', image_url: url } : { type: 'input_audio', audio_url: url };
  return [{ role: 'user', content: [part, ...(text === '' ? [] : [{ type: 'input_text', text }])] }];
}

/** Returns the content of a message of `POST /v1/chat/completions`: a text, or a file with the text after it. */
export function chatContent(text: string, media: MediaFile | undefined) {
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
