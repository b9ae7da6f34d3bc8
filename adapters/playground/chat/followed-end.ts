import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

/** Distance from the end of the page, in pixels, within which the user counts as having scrolled to it. */
const NEAR_PX = 60;

/**
 * Scrolls to the end of the page whenever `content` changes and `element` is shown, unless the user has scrolled away
 * from the end. Returns a function that makes the next change of `content` scroll in any case.
 */
export function useFollowedEnd(element: RefObject<HTMLElement | null>, content: unknown): () => void {
  const following = useRef(true);
  useEffect(() => {
    const look = () => {
      if (!isShown(element)) return;
      const { scrollHeight } = document.documentElement;
      following.current = scrollY + innerHeight >= scrollHeight - NEAR_PX;
    };
    addEventListener('scroll', look);
    return () => removeEventListener('scroll', look);
  }, [element]);
  useLayoutEffect(() => {
    if (following.current && isShown(element)) scrollTo(0, document.documentElement.scrollHeight);
  }, [element, content]);
  return () => {
    following.current = true;
  };
}

const isShown = ({ current }: RefObject<HTMLElement | null>) => current !== null && current.offsetParent !== null;
