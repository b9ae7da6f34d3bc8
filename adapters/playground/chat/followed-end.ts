import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

/** Pixels above the end of the page at which the user still counts as reading it. */
const NEAR_PX = 60;

/**
 * Keeps the end of the page in sight while `content` grows and `element` is shown, until the user scrolls away from it.
 * Returns a function that goes to the end again.
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
