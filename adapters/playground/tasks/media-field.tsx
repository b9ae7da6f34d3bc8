import { type MediaFile, readMedia } from './media.ts';

interface MediaFieldProps {
  media: MediaFile | undefined;
  onChange(media: MediaFile | undefined): void;
  onError(cause: unknown): void;
}

/** Lets the user add one image or recording to the context, and shows it. */
export function MediaField({ media, onChange, onError }: MediaFieldProps) {
  if (media) {
    return (
      <div class="row media">
        {media.kind === 'image' ? <img src={media.url} alt={media.name} /> : <span>{media.name}</span>}
        <button type="button" aria-label={`Remove ${media.name}`} onClick={() => onChange(undefined)}>
          Remove
        </button>
      </div>
    );
  }
  return (
    <label for="media">
      Image or recording (for models that read them)
      <input
        id="media"
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
