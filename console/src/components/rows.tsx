/** Long lists: the first rows at once, and further ones as the reader comes near them. */
import { useEffect, useRef, useState } from 'preact/hooks';

const STEP = 100;

/** Returns the rows to show of a list, and a mark to put after them. `inputs` are what the list depends on. */
export function useRows<T>(items: readonly T[], inputs: readonly unknown[]) {
  const [shown, setShown] = useState(STEP);
  const mark = useRef<HTMLDivElement>(null);
  useEffect(() => setShown(STEP), inputs);
  const isWhole = shown >= items.length;
  useEffect(() => {
    const element = mark.current;
    if (element === null || isWhole) {
      return undefined;
    }
    const observer = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && setShown((rows) => rows + STEP),
      { rootMargin: '600px' },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [isWhole, shown]);
  return {
    rows: items.slice(0, shown),
    end: (
      <div ref={mark} class="more">
        {!isWhole && `${(items.length - shown).toLocaleString()} more`}
      </div>
    ),
  };
}
