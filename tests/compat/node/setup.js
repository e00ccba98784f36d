// What the tests of @google-cloud/pubsub share: one client on the server that PUBSUB_EMULATOR_HOST names, and names that are used once.

'use strict';

const {randomUUID} = require('node:crypto');
const {after} = require('node:test');
const {PubSub} = require('@google-cloud/pubsub');

const pubsub = new PubSub({projectId: 'test'});
after(() => pubsub.close());

const uniqueName = () => `node-${randomUUID()}`;

/** A topic whose publishers keep the order of keys, and a subscription with ordering and these settings. */
async function create(settings = {}) {
  const name = uniqueName();
  await pubsub.createTopic(name);
  const topic = pubsub.topic(name, {messageOrdering: true});
  await topic.createSubscription(name, {enableMessageOrdering: true, ...settings});
  return {topic, subscription: topic.subscription(name)};
}

/** Publish texts in order, with one key. */
const publish = (topic, ...texts) =>
  Promise.all(texts.map(text => topic.publishMessage({data: Buffer.from(text), orderingKey: 'k'})));

/** Subscribe until `count` messages arrived and every `onMessage` is done; the messages in the order of arrival. */
async function receive(subscription, count, onMessage = message => message.ack()) {
  const messages = [], handled = [];
  try {
    await new Promise((resolve, reject) => {
      subscription.on('error', reject);
      subscription.on('message', message => {
        if (messages.push(message) > count) return message.nack();
        handled.push(onMessage(message));
        if (messages.length === count) resolve();
      });
    });
    await Promise.all(handled);
  } finally {
    await subscription.close();
  }
  return messages.slice(0, count);
}

const texts = messages => messages.map(message => message.data.toString());

module.exports = {create, publish, pubsub, receive, texts, uniqueName};
