import { BrokerError, quote } from "@stele/wire";

/** A name that passed {@link parseTopicName}. */
export type TopicName = string & { readonly __brand: "TopicName" };

/** Longest topic name and topic filter, in characters (each is one UTF-16 unit, and at most two UTF-8 bytes). */
export const topicCharactersMax = 256;

const lowestCharacter = 32;
const highestCharacter = 128;

/**
 * Checks a topic name: 1 to 256 characters, each in [32,128], not all blank, without the wildcards `+` and `#`, not ending in `/`.
 * @throws BrokerError 100103 blank, 100102 too long, 100106 invalid character.
 */
export function parseTopicName(text: string): TopicName {
  checkTopicText(text);
  const wildcard = /[+#]/.exec(text);
  if (wildcard !== null) {
    throw new BrokerError("topicInvalidCharacter", {
      details: `${quote(wildcard[0])} in ${quote(text)} is a wildcard`,
    });
  }
  if (text.endsWith("/")) {
    throw new BrokerError("topicInvalidCharacter", { details: `${quote(text)} ends in "/"` });
  }
  return text as TopicName; // Checked above.
}

/** Whether {@link parseTopicName} accepts the text. */
export function isTopicName(text: string): text is TopicName {
  try {
    parseTopicName(text);
    return true;
  } catch {
    return false;
  }
}

/** Rules that names and filters share: not blank, not too long, characters in range. Throws like {@link parseTopicName}. */
export function checkTopicText(text: string): void {
  if (text.trim() === "") throw new BrokerError("topicBlank");
  if (text.length > topicCharactersMax) {
    throw new BrokerError("topicTooLong", { details: `${text.length} characters, at most ${topicCharactersMax}` });
  }
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit < lowestCharacter || unit > highestCharacter) {
      throw new BrokerError("topicInvalidCharacter", {
        details: `character ${unit} at index ${index}, allowed are ${lowestCharacter} to ${highestCharacter}`,
      });
    }
  }
}
