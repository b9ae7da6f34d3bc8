import { type MediaFile, readMedia } from './media-file.ts';

interface MediaFieldProps {
  id: string;
  label: string;
  media: MediaFile | undefined;
  onChange(media: MediaFile | undefined): void;
  onError(cause: unknown): void;
}

/** Lets the user add one image or recording, and shows it. */
export function MediaField({ id, label, media, onChange, onError }: MediaFieldProps) {
  if (media) {
    return (
      <div class="row media">
        <MediaView media={media} />
        <button type="button" aria-label={`Remove ${media.name}`} onClick={() => onChange(undefined)}>
          Remove
        </button>
      </div>
    );
  }
  return (
    <label for={id}>
      {label}
      <input
        id={id}
        type="file"
        accept="image/*,audio/*"
        onChange={(event) => {
          const [file] = event.currentTarget.files ?? [];
          if (file) readMedia(file).then(onChange, onError);
        }}
      />
    </label>
  );
}

/** Shows an image, or the name of a recording. */
export function MediaView({ media }: { media: MediaFile }) {
  return media.kind === 'image' ? <img src={media.url} alt={media.name} /> : <span>{media.name}</span>;
}
