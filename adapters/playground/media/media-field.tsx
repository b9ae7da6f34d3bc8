import { useLayoutEffect, useRef } from 'preact/hooks';
import { type PickedFile, readPickedFile } from './media-file.ts';

interface MediaFieldProps {
  id: string;
  label: string;
  media: PickedFile | undefined;
  onChange(media: PickedFile | undefined): void;
  onError(cause: unknown): void;
}

/** Lets the user add one image or recording, and shows it. */
export function MediaField({ id, label, media, onChange, onError }: MediaFieldProps) {
  // The field and its button replace each other, so the focus moves with the user's change.
  const element = useRef<HTMLButtonElement & HTMLInputElement>(null);
  const moveFocus = useRef(false);
  useLayoutEffect(() => {
    if (moveFocus.current) element.current?.focus();
    moveFocus.current = false;
  }, [media]);
  const change = (file: PickedFile | undefined) => {
    moveFocus.current = true;
    onChange(file);
  };
  if (media) {
    return (
      <div class="row media">
        <MediaView media={media} />
        <button ref={element} type="button" aria-label={`Remove ${media.name}`} onClick={() => change(undefined)}>
          Remove
        </button>
      </div>
    );
  }
  return (
    <label for={id}>
      {label}
      <input
        ref={element}
        id={id}
        type="file"
        accept="image/*,audio/*"
        onChange={(event) => {
          const [file] = event.currentTarget.files ?? [];
          if (file) readPickedFile(file).then(change, onError);
        }}
      />
    </label>
  );
}

/** Shows an image, or plays a recording. */
export function MediaView({ media: { kind, name, url } }: { media: PickedFile }) {
  if (kind === 'image') return <img src={url} alt={name} />;
  return (
    <figure>
      <figcaption>{name}</figcaption>
      {/* biome-ignore lint/a11y/useMediaCaption: nobody has written captions for the user's own recording */}
      <audio controls src={url} aria-label={name} />
    </figure>
  );
}
