BEGIN TRANSACTION;
CREATE TABLE "auth_group" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(150) NOT NULL UNIQUE);
INSERT INTO "auth_group" VALUES(1,'name-0');
INSERT INTO "auth_group" VALUES(2,'name-1');
CREATE TABLE "auth_group_permissions" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "group_id" integer NOT NULL REFERENCES "auth_group" ("id") DEFERRABLE INITIALLY DEFERRED, "permission_id" integer NOT NULL REFERENCES "auth_permission" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "auth_group_permissions" VALUES(1,1,1);
INSERT INTO "auth_group_permissions" VALUES(2,2,1);
CREATE TABLE "auth_permission" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "content_type_id" integer NOT NULL REFERENCES "django_content_type" ("id") DEFERRABLE INITIALLY DEFERRED, "codename" varchar(100) NOT NULL, "name" varchar(255) NOT NULL);
INSERT INTO "auth_permission" VALUES(1,1,'add_logentry','Can add log entry');
INSERT INTO "auth_permission" VALUES(2,1,'change_logentry','Can change log entry');
INSERT INTO "auth_permission" VALUES(3,1,'delete_logentry','Can delete log entry');
INSERT INTO "auth_permission" VALUES(4,1,'view_logentry','Can view log entry');
INSERT INTO "auth_permission" VALUES(5,2,'add_permission','Can add permission');
INSERT INTO "auth_permission" VALUES(6,2,'change_permission','Can change permission');
INSERT INTO "auth_permission" VALUES(7,2,'delete_permission','Can delete permission');
INSERT INTO "auth_permission" VALUES(8,2,'view_permission','Can view permission');
INSERT INTO "auth_permission" VALUES(9,3,'add_group','Can add group');
INSERT INTO "auth_permission" VALUES(10,3,'change_group','Can change group');
INSERT INTO "auth_permission" VALUES(11,3,'delete_group','Can delete group');
INSERT INTO "auth_permission" VALUES(12,3,'view_group','Can view group');
INSERT INTO "auth_permission" VALUES(13,4,'add_user','Can add user');
INSERT INTO "auth_permission" VALUES(14,4,'change_user','Can change user');
INSERT INTO "auth_permission" VALUES(15,4,'delete_user','Can delete user');
INSERT INTO "auth_permission" VALUES(16,4,'view_user','Can view user');
INSERT INTO "auth_permission" VALUES(17,5,'add_contenttype','Can add content type');
INSERT INTO "auth_permission" VALUES(18,5,'change_contenttype','Can change content type');
INSERT INTO "auth_permission" VALUES(19,5,'delete_contenttype','Can delete content type');
INSERT INTO "auth_permission" VALUES(20,5,'view_contenttype','Can view content type');
INSERT INTO "auth_permission" VALUES(21,6,'add_session','Can add session');
INSERT INTO "auth_permission" VALUES(22,6,'change_session','Can change session');
INSERT INTO "auth_permission" VALUES(23,6,'delete_session','Can delete session');
INSERT INTO "auth_permission" VALUES(24,6,'view_session','Can view session');
INSERT INTO "auth_permission" VALUES(25,7,'add_healthsnapshot','Can add health snapshot');
INSERT INTO "auth_permission" VALUES(26,7,'change_healthsnapshot','Can change health snapshot');
INSERT INTO "auth_permission" VALUES(27,7,'delete_healthsnapshot','Can delete health snapshot');
INSERT INTO "auth_permission" VALUES(28,7,'view_healthsnapshot','Can view health snapshot');
INSERT INTO "auth_permission" VALUES(29,8,'add_contextsettings','Can add context settings');
INSERT INTO "auth_permission" VALUES(30,8,'change_contextsettings','Can change context settings');
INSERT INTO "auth_permission" VALUES(31,8,'delete_contextsettings','Can delete context settings');
INSERT INTO "auth_permission" VALUES(32,8,'view_contextsettings','Can view context settings');
INSERT INTO "auth_permission" VALUES(33,9,'add_proposal','Can add proposal');
INSERT INTO "auth_permission" VALUES(34,9,'change_proposal','Can change proposal');
INSERT INTO "auth_permission" VALUES(35,9,'delete_proposal','Can delete proposal');
INSERT INTO "auth_permission" VALUES(36,9,'view_proposal','Can view proposal');
INSERT INTO "auth_permission" VALUES(37,10,'add_remediationrun','Can add remediation run');
INSERT INTO "auth_permission" VALUES(38,10,'change_remediationrun','Can change remediation run');
INSERT INTO "auth_permission" VALUES(39,10,'delete_remediationrun','Can delete remediation run');
INSERT INTO "auth_permission" VALUES(40,10,'view_remediationrun','Can view remediation run');
INSERT INTO "auth_permission" VALUES(41,11,'add_removedunit','Can add removed unit');
INSERT INTO "auth_permission" VALUES(42,11,'change_removedunit','Can change removed unit');
INSERT INTO "auth_permission" VALUES(43,11,'delete_removedunit','Can delete removed unit');
INSERT INTO "auth_permission" VALUES(44,11,'view_removedunit','Can view removed unit');
INSERT INTO "auth_permission" VALUES(45,12,'add_cleanuptask','Can add cleanup task');
INSERT INTO "auth_permission" VALUES(46,12,'change_cleanuptask','Can change cleanup task');
INSERT INTO "auth_permission" VALUES(47,12,'delete_cleanuptask','Can delete cleanup task');
INSERT INTO "auth_permission" VALUES(48,12,'view_cleanuptask','Can view cleanup task');
INSERT INTO "auth_permission" VALUES(49,13,'add_contextevent','Can add context event');
INSERT INTO "auth_permission" VALUES(50,13,'change_contextevent','Can change context event');
INSERT INTO "auth_permission" VALUES(51,13,'delete_contextevent','Can delete context event');
INSERT INTO "auth_permission" VALUES(52,13,'view_contextevent','Can view context event');
INSERT INTO "auth_permission" VALUES(53,14,'add_preparedrewrite','Can add prepared rewrite');
INSERT INTO "auth_permission" VALUES(54,14,'change_preparedrewrite','Can change prepared rewrite');
INSERT INTO "auth_permission" VALUES(55,14,'delete_preparedrewrite','Can delete prepared rewrite');
INSERT INTO "auth_permission" VALUES(56,14,'view_preparedrewrite','Can view prepared rewrite');
INSERT INTO "auth_permission" VALUES(57,15,'add_agent','Can add agent');
INSERT INTO "auth_permission" VALUES(58,15,'change_agent','Can change agent');
INSERT INTO "auth_permission" VALUES(59,15,'delete_agent','Can delete agent');
INSERT INTO "auth_permission" VALUES(60,15,'view_agent','Can view agent');
INSERT INTO "auth_permission" VALUES(61,16,'add_dialog','Can add dialog');
INSERT INTO "auth_permission" VALUES(62,16,'change_dialog','Can change dialog');
INSERT INTO "auth_permission" VALUES(63,16,'delete_dialog','Can delete dialog');
INSERT INTO "auth_permission" VALUES(64,16,'view_dialog','Can view dialog');
INSERT INTO "auth_permission" VALUES(65,16,'view_all_dialogs','Can read the dialogs of others');
INSERT INTO "auth_permission" VALUES(66,16,'act_in_all_dialogs','Can act in the dialogs of others');
INSERT INTO "auth_permission" VALUES(67,16,'operate','Can use the operations page and change settings of the site');
INSERT INTO "auth_permission" VALUES(68,16,'view_metrics','Can read the metrics');
INSERT INTO "auth_permission" VALUES(69,16,'resolve_question','Can resolve a critical Q4H');
INSERT INTO "auth_permission" VALUES(70,17,'add_apikey','Can add api key');
INSERT INTO "auth_permission" VALUES(71,17,'change_apikey','Can change api key');
INSERT INTO "auth_permission" VALUES(72,17,'delete_apikey','Can delete api key');
INSERT INTO "auth_permission" VALUES(73,17,'view_apikey','Can view api key');
INSERT INTO "auth_permission" VALUES(74,18,'add_artifact','Can add artifact');
INSERT INTO "auth_permission" VALUES(75,18,'change_artifact','Can change artifact');
INSERT INTO "auth_permission" VALUES(76,18,'delete_artifact','Can delete artifact');
INSERT INTO "auth_permission" VALUES(77,18,'view_artifact','Can view artifact');
INSERT INTO "auth_permission" VALUES(78,19,'add_event','Can add event');
INSERT INTO "auth_permission" VALUES(79,19,'change_event','Can change event');
INSERT INTO "auth_permission" VALUES(80,19,'delete_event','Can delete event');
INSERT INTO "auth_permission" VALUES(81,19,'view_event','Can view event');
INSERT INTO "auth_permission" VALUES(82,20,'add_generation','Can add generation');
INSERT INTO "auth_permission" VALUES(83,20,'change_generation','Can change generation');
INSERT INTO "auth_permission" VALUES(84,20,'delete_generation','Can delete generation');
INSERT INTO "auth_permission" VALUES(85,20,'view_generation','Can view generation');
INSERT INTO "auth_permission" VALUES(86,21,'add_personsettings','Can add person settings');
INSERT INTO "auth_permission" VALUES(87,21,'change_personsettings','Can change person settings');
INSERT INTO "auth_permission" VALUES(88,21,'delete_personsettings','Can delete person settings');
INSERT INTO "auth_permission" VALUES(89,21,'view_personsettings','Can view person settings');
INSERT INTO "auth_permission" VALUES(90,22,'add_question','Can add question');
INSERT INTO "auth_permission" VALUES(91,22,'change_question','Can change question');
INSERT INTO "auth_permission" VALUES(92,22,'delete_question','Can delete question');
INSERT INTO "auth_permission" VALUES(93,22,'view_question','Can view question');
INSERT INTO "auth_permission" VALUES(94,23,'add_reminder','Can add reminder');
INSERT INTO "auth_permission" VALUES(95,23,'change_reminder','Can change reminder');
INSERT INTO "auth_permission" VALUES(96,23,'delete_reminder','Can delete reminder');
INSERT INTO "auth_permission" VALUES(97,23,'view_reminder','Can view reminder');
INSERT INTO "auth_permission" VALUES(98,24,'add_round','Can add round');
INSERT INTO "auth_permission" VALUES(99,24,'change_round','Can change round');
INSERT INTO "auth_permission" VALUES(100,24,'delete_round','Can delete round');
INSERT INTO "auth_permission" VALUES(101,24,'view_round','Can view round');
INSERT INTO "auth_permission" VALUES(102,25,'add_sitesettings','Can add site settings');
INSERT INTO "auth_permission" VALUES(103,25,'change_sitesettings','Can change site settings');
INSERT INTO "auth_permission" VALUES(104,25,'delete_sitesettings','Can delete site settings');
INSERT INTO "auth_permission" VALUES(105,25,'view_sitesettings','Can view site settings');
INSERT INTO "auth_permission" VALUES(106,26,'add_turn','Can add turn');
INSERT INTO "auth_permission" VALUES(107,26,'change_turn','Can change turn');
INSERT INTO "auth_permission" VALUES(108,26,'delete_turn','Can delete turn');
INSERT INTO "auth_permission" VALUES(109,26,'view_turn','Can view turn');
INSERT INTO "auth_permission" VALUES(110,27,'add_client','Can add client');
INSERT INTO "auth_permission" VALUES(111,27,'change_client','Can change client');
INSERT INTO "auth_permission" VALUES(112,27,'delete_client','Can delete client');
INSERT INTO "auth_permission" VALUES(113,27,'view_client','Can view client');
INSERT INTO "auth_permission" VALUES(114,28,'add_recallchoice','Can add recall choice');
INSERT INTO "auth_permission" VALUES(115,28,'change_recallchoice','Can change recall choice');
INSERT INTO "auth_permission" VALUES(116,28,'delete_recallchoice','Can delete recall choice');
INSERT INTO "auth_permission" VALUES(117,28,'view_recallchoice','Can view recall choice');
INSERT INTO "auth_permission" VALUES(118,29,'add_forcingrefusal','Can add forcing refusal');
INSERT INTO "auth_permission" VALUES(119,29,'change_forcingrefusal','Can change forcing refusal');
INSERT INTO "auth_permission" VALUES(120,29,'delete_forcingrefusal','Can delete forcing refusal');
INSERT INTO "auth_permission" VALUES(121,29,'view_forcingrefusal','Can view forcing refusal');
INSERT INTO "auth_permission" VALUES(122,30,'add_requestpart','Can add request part');
INSERT INTO "auth_permission" VALUES(123,30,'change_requestpart','Can change request part');
INSERT INTO "auth_permission" VALUES(124,30,'delete_requestpart','Can delete request part');
INSERT INTO "auth_permission" VALUES(125,30,'view_requestpart','Can view request part');
INSERT INTO "auth_permission" VALUES(126,31,'add_attachment','Can add attachment');
INSERT INTO "auth_permission" VALUES(127,31,'change_attachment','Can change attachment');
INSERT INTO "auth_permission" VALUES(128,31,'delete_attachment','Can delete attachment');
INSERT INTO "auth_permission" VALUES(129,31,'view_attachment','Can view attachment');
INSERT INTO "auth_permission" VALUES(130,32,'add_embeddinguse','Can add embedding use');
INSERT INTO "auth_permission" VALUES(131,32,'change_embeddinguse','Can change embedding use');
INSERT INTO "auth_permission" VALUES(132,32,'delete_embeddinguse','Can delete embedding use');
INSERT INTO "auth_permission" VALUES(133,32,'view_embeddinguse','Can view embedding use');
INSERT INTO "auth_permission" VALUES(134,33,'add_connectedprovider','Can add connected provider');
INSERT INTO "auth_permission" VALUES(135,33,'change_connectedprovider','Can change connected provider');
INSERT INTO "auth_permission" VALUES(136,33,'delete_connectedprovider','Can delete connected provider');
INSERT INTO "auth_permission" VALUES(137,33,'view_connectedprovider','Can view connected provider');
INSERT INTO "auth_permission" VALUES(138,34,'add_delivery','Can add delivery');
INSERT INTO "auth_permission" VALUES(139,34,'change_delivery','Can change delivery');
INSERT INTO "auth_permission" VALUES(140,34,'delete_delivery','Can delete delivery');
INSERT INTO "auth_permission" VALUES(141,34,'view_delivery','Can view delivery');
INSERT INTO "auth_permission" VALUES(142,35,'add_identity','Can add identity');
INSERT INTO "auth_permission" VALUES(143,35,'change_identity','Can change identity');
INSERT INTO "auth_permission" VALUES(144,35,'delete_identity','Can delete identity');
INSERT INTO "auth_permission" VALUES(145,35,'view_identity','Can view identity');
INSERT INTO "auth_permission" VALUES(146,36,'add_prompttemplate','Can add prompt template');
INSERT INTO "auth_permission" VALUES(147,36,'change_prompttemplate','Can change prompt template');
INSERT INTO "auth_permission" VALUES(148,36,'delete_prompttemplate','Can delete prompt template');
INSERT INTO "auth_permission" VALUES(149,36,'view_prompttemplate','Can view prompt template');
INSERT INTO "auth_permission" VALUES(150,37,'add_pushsubscription','Can add push subscription');
INSERT INTO "auth_permission" VALUES(151,37,'change_pushsubscription','Can change push subscription');
INSERT INTO "auth_permission" VALUES(152,37,'delete_pushsubscription','Can delete push subscription');
INSERT INTO "auth_permission" VALUES(153,37,'view_pushsubscription','Can view push subscription');
INSERT INTO "auth_permission" VALUES(154,38,'add_toolserver','Can add tool server');
INSERT INTO "auth_permission" VALUES(155,38,'change_toolserver','Can change tool server');
INSERT INTO "auth_permission" VALUES(156,38,'delete_toolserver','Can delete tool server');
INSERT INTO "auth_permission" VALUES(157,38,'view_toolserver','Can view tool server');
INSERT INTO "auth_permission" VALUES(158,39,'add_calltotals','Can add call totals');
INSERT INTO "auth_permission" VALUES(159,39,'change_calltotals','Can change call totals');
INSERT INTO "auth_permission" VALUES(160,39,'delete_calltotals','Can delete call totals');
INSERT INTO "auth_permission" VALUES(161,39,'view_calltotals','Can view call totals');
CREATE TABLE "auth_user" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "password" varchar(128) NOT NULL, "last_login" datetime NULL, "is_superuser" bool NOT NULL, "username" varchar(150) NOT NULL UNIQUE, "last_name" varchar(150) NOT NULL, "email" varchar(254) NOT NULL, "is_staff" bool NOT NULL, "is_active" bool NOT NULL, "date_joined" datetime NOT NULL, "first_name" varchar(150) NOT NULL);
INSERT INTO "auth_user" VALUES(1,'!',NULL,0,'someone','','',0,1,'2026-11-25 21:52:55.251477','');
INSERT INTO "auth_user" VALUES(2,'!',NULL,0,'staff','','',1,1,'2026-11-25 21:54:33.407463','');
CREATE TABLE "auth_user_groups" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "group_id" integer NOT NULL REFERENCES "auth_group" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "auth_user_groups" VALUES(1,2,1);
INSERT INTO "auth_user_groups" VALUES(2,2,2);
CREATE TABLE "auth_user_user_permissions" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "permission_id" integer NOT NULL REFERENCES "auth_permission" ("id") DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE "dialogs_agent" ("id" varchar(64) NOT NULL PRIMARY KEY, "name" varchar(120) NOT NULL, "provider" varchar(80) NOT NULL, "model" varchar(120) NOT NULL, "instructions" text NOT NULL, "tools" text NOT NULL CHECK ((JSON_VALID("tools") OR "tools" IS NULL)), "context_policy" varchar(16) NOT NULL, "critical_policy" varchar(12) NOT NULL, "context_limit" integer unsigned NULL CHECK ("context_limit" >= 0), "llm_type" varchar(40) NOT NULL, "priority" smallint unsigned NOT NULL CHECK ("priority" >= 0), "priority_areas" text NOT NULL CHECK ((JSON_VALID("priority_areas") OR "priority_areas" IS NULL)), "is_default" bool NOT NULL, "is_demo" bool NOT NULL, "is_listed" bool NOT NULL, "enabled" bool NOT NULL, "toolsets" text NOT NULL CHECK ((JSON_VALID("toolsets") OR "toolsets" IS NULL)), "model_params" text NOT NULL CHECK ((JSON_VALID("model_params") OR "model_params" IS NULL)), "recall" bool NOT NULL, "dialog_budget_usd" decimal NULL, "proxy" bool DEFAULT 0 NOT NULL, "description" varchar(200) DEFAULT '' NOT NULL, "suggestions" text NOT NULL CHECK ((JSON_VALID("suggestions") OR "suggestions" IS NULL)), "prepare_rewrites" bool DEFAULT 1 NOT NULL, "tool_approval" varchar(8) DEFAULT 'never' NOT NULL);
INSERT INTO "dialogs_agent" VALUES('demo','Guide','demo','guide','Show a newcomer how a long conversation is kept healthy.','[]','none','escalate',NULL,'',2,'[]',1,1,1,1,'[]','{}',0,NULL,0,'Shows a context that fills, turns red and gets well again, in six messages.','["Who are you?", "What does the coloured mark say?", "Go on"]',0,'never');
INSERT INTO "dialogs_agent" VALUES('demo-asks','Asker','demo','asks','Ask a person before you decide anything.','[]','none','escalate',NULL,'',2,'[]',0,1,1,1,'[]','{}',1,NULL,0,'Asks a person, waits for the answer, and goes on.','["Ask me something", "Prepare the release", "Who are you?"]',0,'never');
INSERT INTO "dialogs_agent" VALUES('demo-autocompaction','Compactor','demo','compactor','Read logs with the person, hour by hour.','[]','autocompaction','escalate',NULL,'',2,'[]',0,1,1,1,'[]','{}',1,NULL,0,'Plays a small local model whose history is compacted.','["Read the logs with me", "Next hour", "Go on"]',0,'never');
INSERT INTO "dialogs_agent" VALUES('demo-breaking','Breaker','demo','breaker','Keep the log of a voyage with the person, day by day.','[]','breaking','escalate',3500,'',2,'[]',0,1,1,1,'[]','{}',1,NULL,0,'Keeps to a small budget by a chain of strategies.','["Who are you?", "Next day", "Go on"]',0,'never');
INSERT INTO "dialogs_agent" VALUES('demo-mindful','Mindful','demo','mindful','Plan with the person, and clear your mind when the runtime asks you to.','[]','none','escalate',NULL,'',2,'[]',0,1,1,1,'[]','{}',0,NULL,0,'Tidies up in time: clears its mind at the first hint.','["Plan a weekend in the mountains", "Which hut is best?", "Go on"]',0,'never');
INSERT INTO "dialogs_agent" VALUES('demo-quiet','Quiet','demo','quiet','Answer, and report no usage.','[]','none','escalate',NULL,'',2,'[]',0,1,1,1,'[]','{}',1,NULL,0,'Reports no usage, as many servers do.','["Who are you?", "How full is your context?", "Go on"]',0,'never');
INSERT INTO "dialogs_agent" VALUES('demo-retention','Keeper','demo','keeper','Plan repairs with the person, list by list.','[]','retention','escalate',NULL,'',2,'[]',0,1,1,1,'[]','{}',1,NULL,0,'Keeps what matters by importance, and archives the rest.','["Plan repairs with me", "Next list", "Go on"]',0,'never');
INSERT INTO "dialogs_agent" VALUES('demo-stubborn','Stubborn','demo','stubborn','Never forget anything, whoever asks.','[]','none','escalate',NULL,'',2,'[]',0,1,1,1,'[]','{}',0,NULL,0,'Refuses to clear its mind, until a person decides.','["Remember this", "Will you ever forget?", "Go on"]',0,'never');
CREATE TABLE "dialogs_apikey" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(80) NOT NULL, "digest" varchar(64) NOT NULL UNIQUE, "last_four" varchar(4) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "revoked_at" datetime NULL, "owner_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "expires_at" datetime NULL, "keep_days" smallint unsigned NULL CHECK ("keep_days" >= 0), "last_used_at" datetime NULL, "scope" varchar(4) DEFAULT 'all' NOT NULL, "budget_usd" decimal NULL);
INSERT INTO "dialogs_apikey" VALUES(1,'apikey command','d728182ba1ef5090c9896ebb1c6f9f97dec9353e9f83e3c4da51ee600571347d','uufE','2026-11-25 21:53:35.344249',NULL,1,NULL,NULL,'2026-11-25 21:53:41.867409','all',NULL);
CREATE TABLE "dialogs_artifact" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "tool_call_id" varchar(120) NOT NULL, "text" text NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "dialogs_artifact" VALUES(1,'tool_call_id-0','text 0: it''s "quoted"
Grüße, 世界','2026-11-20 12:30:00','530644b432b14c13bffaaf446f855a6e');
INSERT INTO "dialogs_artifact" VALUES(2,'tool_call_id-1','text 1: it''s "quoted"
Grüße, 世界','2026-11-21 12:30:00','7114aa54e9554920815321a5f7185c6d');
CREATE TABLE "dialogs_attachment" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(120) NOT NULL, "media_type" varchar(20) NOT NULL, "sha256" varchar(64) NOT NULL, "content" BLOB NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "attachment_unique" UNIQUE ("dialog_id", "sha256"));
INSERT INTO "dialogs_attachment" VALUES(1,'name-0','media_type-0','sha256-0',X'00FF00','2026-11-20 12:30:00','530644b432b14c13bffaaf446f855a6e');
INSERT INTO "dialogs_attachment" VALUES(2,'name-1','media_type-1','sha256-1',X'00FF01','2026-11-21 12:30:00','7114aa54e9554920815321a5f7185c6d');
CREATE TABLE "dialogs_calltotals" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "agent" varchar(80) NOT NULL, "provider" varchar(80) NOT NULL, "model" varchar(120) NOT NULL, "calls" integer unsigned NOT NULL CHECK ("calls" >= 0), "prompt_tokens" bigint unsigned NOT NULL CHECK ("prompt_tokens" >= 0), "cache_read_tokens" bigint unsigned NOT NULL CHECK ("cache_read_tokens" >= 0), "completion_tokens" bigint unsigned NOT NULL CHECK ("completion_tokens" >= 0), "cost_usd" decimal NOT NULL, "unpriced" integer unsigned NOT NULL CHECK ("unpriced" >= 0), "person_id" integer NOT NULL, "began_at" datetime NOT NULL, CONSTRAINT "call_totals_unique" UNIQUE ("began_at", "person_id", "agent", "provider", "model"));
INSERT INTO "dialogs_calltotals" VALUES(1,'agent-0','provider-0','model-0',1,1,1,1,0.25,1,1,'2026-11-20 12:30:00');
INSERT INTO "dialogs_calltotals" VALUES(2,'agent-1','provider-1','model-1',2,2,2,2,0.5,2,2,'2026-11-21 12:30:00');
CREATE TABLE "dialogs_client" ("dialog_id" char(32) NOT NULL PRIMARY KEY REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, "said" varchar(64) NOT NULL, "instructions" text NOT NULL, "tools" text NOT NULL CHECK ((JSON_VALID("tools") OR "tools" IS NULL)), "required_tool" varchar(120) NOT NULL, "key_id" bigint NULL REFERENCES "dialogs_apikey" ("id") DEFERRABLE INITIALLY DEFERRED, "end_user" varchar(200) DEFAULT '' NOT NULL, "first" varchar(64) DEFAULT '' NOT NULL, "answer_digest" varchar(64) DEFAULT '' NOT NULL, "newest" varchar(64) DEFAULT '' NOT NULL, "params" text NULL CHECK ((JSON_VALID("params") OR "params" IS NULL)), "system_messages" text NULL CHECK ((JSON_VALID("system_messages") OR "system_messages" IS NULL)));
INSERT INTO "dialogs_client" VALUES('530644b432b14c13bffaaf446f855a6e','messages_digest-0','instructions 0: it''s "quoted"
Grüße, 世界','[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]','required_tool-0',1,'end_user-0','first-0','answer_digest-0','newest-0','[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]','[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]');
INSERT INTO "dialogs_client" VALUES('7114aa54e9554920815321a5f7185c6d','messages_digest-1','instructions 1: it''s "quoted"
Grüße, 世界','[1, "Gr\u00fc\u00dfe, \u4e16\u754c"]','required_tool-1',NULL,'end_user-1','first-1','answer_digest-1','newest-1',NULL,NULL);
CREATE TABLE "dialogs_connectedprovider" ("provider_id" varchar(80) NOT NULL PRIMARY KEY, "name" varchar(120) NOT NULL, "kind" varchar(40) NOT NULL, "base_url" varchar(500) NOT NULL, "sealed_key" text DEFAULT '' NOT NULL, "model_ids" text NOT NULL, "connected_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL);
INSERT INTO "dialogs_connectedprovider" VALUES('','name-0','kind-0','https://example.org/0','sealed_key 0: it''s "quoted"
Grüße, 世界','model_ids 0: it''s "quoted"
Grüße, 世界','2026-11-20 12:30:00');
CREATE TABLE "dialogs_delivery" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "channel" varchar(8) NOT NULL, "event" varchar(24) NOT NULL, "body" text NOT NULL, "tries" smallint unsigned NOT NULL CHECK ("tries" >= 0), "due_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NULL, "sent_at" datetime NULL, "error" text NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "person_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "question_id" char(32) NULL REFERENCES "dialogs_question" ("id") DEFERRABLE INITIALLY DEFERRED, "subscription_id" bigint NULL REFERENCES "dialogs_pushsubscription" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "dialogs_delivery" VALUES(1,'mail','event-0','body 0: it''s "quoted"
Grüße, 世界',1,'2026-11-20 12:30:00','2026-11-20 12:30:00','error 0: it''s "quoted"
Grüße, 世界','2026-11-20 12:30:00',1,'9e8f0368ee6d4fefb6f5482a002d72e2',1);
INSERT INTO "dialogs_delivery" VALUES(2,'webhook','event-1','body 1: it''s "quoted"
Grüße, 世界',2,'2026-11-25 21:54:34.646982',NULL,'error 1: it''s "quoted"
Grüße, 世界','2026-11-21 12:30:00',NULL,NULL,NULL);
CREATE TABLE "dialogs_dialog" ("id" char(32) NOT NULL PRIMARY KEY, "title" varchar(200) NOT NULL, "provider" varchar(80) NOT NULL, "model" varchar(120) NOT NULL, "round_number" integer unsigned NOT NULL CHECK ("round_number" >= 0), "state" varchar(10) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "active_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "closed_at" datetime NULL, "last_turn_seq" integer unsigned NOT NULL CHECK ("last_turn_seq" >= 0), "last_position" integer unsigned NOT NULL CHECK ("last_position" >= 0), "last_event_seq" integer unsigned NOT NULL CHECK ("last_event_seq" >= 0), "history_version" integer unsigned NOT NULL CHECK ("history_version" >= 0), "answering_seq" integer unsigned NULL CHECK ("answering_seq" >= 0), "continuing" bool NOT NULL, "requested_rewrite" varchar(16) NOT NULL, "requested_package" text NOT NULL, "stop_requested" bool NOT NULL, "failure" text NOT NULL, "epoch" integer unsigned NOT NULL CHECK ("epoch" >= 0), "lease_owner" varchar(120) NOT NULL, "lease_until" datetime NULL, "wake_at" datetime NULL, "crashes" smallint unsigned NOT NULL CHECK ("crashes" >= 0), "tries" smallint unsigned NOT NULL CHECK ("tries" >= 0), "generations_for_message" integer unsigned NOT NULL CHECK ("generations_for_message" >= 0), "running_call" varchar(120) NOT NULL, "report" varchar(12) NOT NULL, "prompt_tokens" integer unsigned NULL CHECK ("prompt_tokens" >= 0), "completion_tokens" integer unsigned NULL CHECK ("completion_tokens" >= 0), "total_tokens" integer unsigned NULL CHECK ("total_tokens" >= 0), "overflowed" bool NOT NULL, "changed_since_rewrite" bool NOT NULL, "restarts" smallint unsigned NOT NULL CHECK ("restarts" >= 0), "calibration" real NULL, "kept_since_guidance" integer unsigned NULL CHECK ("kept_since_guidance" >= 0), "guided_generations" smallint unsigned NOT NULL CHECK ("guided_generations" >= 0), "failed_clears" smallint unsigned NOT NULL CHECK ("failed_clears" >= 0), "clear_episode" integer unsigned NOT NULL CHECK ("clear_episode" >= 0), "clear_unproven" bool NOT NULL, "agent_id" varchar(64) NOT NULL REFERENCES "dialogs_agent" ("id") DEFERRABLE INITIALLY DEFERRED, "owner_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "archived_at" datetime NULL, "damaged_at" datetime NULL, "beginning" varchar(32) NOT NULL, "context_epoch" integer unsigned NOT NULL CHECK ("context_epoch" >= 0), "repeats" text NOT NULL CHECK ((JSON_VALID("repeats") OR "repeats" IS NULL)), "statements" text NOT NULL CHECK ((JSON_VALID("statements") OR "statements" IS NULL)), "calibration_fit" text NULL CHECK ((JSON_VALID("calibration_fit") OR "calibration_fit" IS NULL)), "budget_usd" decimal NULL, "cost_usd" decimal DEFAULT (CAST('0' AS NUMERIC)) NOT NULL, "unpriced_generations" integer unsigned DEFAULT 0 NOT NULL CHECK ("unpriced_generations" >= 0), "context_policy" varchar(16) DEFAULT '' NOT NULL, "expires_at" datetime NULL, "origin" varchar(10) DEFAULT 'person' NOT NULL, "removed_at" datetime NULL, "source" varchar(200) DEFAULT '' NOT NULL, "fork_count" integer unsigned DEFAULT 0 NOT NULL CHECK ("fork_count" >= 0), "own_from" integer unsigned DEFAULT 1 NOT NULL CHECK ("own_from" >= 0), "request_parts" text NULL CHECK ((JSON_VALID("request_parts") OR "request_parts" IS NULL)), "awaits_title" bool DEFAULT 0 NOT NULL, "forked_from_id" char(32) NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, "pinned_at" datetime NULL, "group_id" integer NULL REFERENCES "auth_group" ("id") DEFERRABLE INITIALLY DEFERRED, "link" char(32) NULL, "folder" varchar(60) NULL, "key_id" bigint NULL REFERENCES "dialogs_apikey" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "dialogs_dialog" VALUES('530644b432b14c13bffaaf446f855a6e','With demo-asks','','',1,'waiting','2026-11-25 21:53:44.167358','2026-11-25 21:53:49.319206',NULL,3,2,11,0,1,0,'','',0,'',1,'','2026-11-25 21:53:57.295106',NULL,0,0,1,'','reported',656,55,711,0,1,0,NULL,NULL,0,0,0,0,'demo-asks',1,NULL,NULL,'82e0bf7ce7452d990dbd75486d472680',0,'{}','[[1, "[reminder 2] Name the port."]]',NULL,NULL,0,1,'',NULL,'key',NULL,'',0,1,'["2c9ceb6062034629dab9d42f279ec4f4", "34d75e8d0f173d9d7230c2794b7497c9", "73a95fadd7e9efc0423c61a0bc3665d6", "97abc3ed12999634364c38a850cbd996"]',0,NULL,NULL,NULL,NULL,NULL,1);
INSERT INTO "dialogs_dialog" VALUES('7114aa54e9554920815321a5f7185c6d','With demo','','',2,'idle','2026-11-25 21:53:42.041881','2026-11-25 21:53:52.024083',NULL,4,4,22,1,NULL,0,'','',0,'',2,'','2026-11-25 21:54:03.899355',NULL,0,0,1,'','awaiting',NULL,NULL,NULL,0,1,0,NULL,NULL,0,0,0,0,'demo',1,NULL,NULL,'rewritten',0,'{}','[]','[1.495486985, 3.0, 82.926692, 0.02243483498, -0.00563503226, -0.01090627951, 0.002720343839, -0.9431016334, 898.1746813]',NULL,0,2,'',NULL,'key',NULL,'',0,1,'["2555673f7ac34b720ad31be98df58d2c", "2c9ceb6062034629dab9d42f279ec4f4", "34d75e8d0f173d9d7230c2794b7497c9", "e6e8747cb8e4c4c6ad873e3987f51d27"]',0,NULL,NULL,NULL,NULL,NULL,1);
INSERT INTO "dialogs_dialog" VALUES('c1aa43d1e8dc44358af2b78f7d5028d1','With demo-retention','','',1,'idle','2026-11-25 21:53:44.813234','2026-11-25 21:53:50.426318',NULL,4,4,17,0,NULL,0,'','',0,'',1,'','2026-11-25 21:54:01.317947',NULL,0,0,1,'','reported',1154,229,1383,0,1,0,NULL,NULL,0,0,0,0,'demo-retention',1,NULL,NULL,'5f1513e87b5a0e5ab90db311a7b8ed11',0,'{}','[[1, "[reminder 3] Name the port."]]','[0.8401041265, 0.8744778165, -0.2429409364, 0.0005437467377, -0.0001072964784, -0.0002076660445, 0.001035246249, -0.9463630425, 898.1683689]',NULL,0,2,'',NULL,'key',NULL,'',0,1,'["15bc5d45770788a9225a35e55075644b", "18f7f5b866f561f0c4675166ddf56ac8", "2c9ceb6062034629dab9d42f279ec4f4", "34d75e8d0f173d9d7230c2794b7497c9"]',0,NULL,NULL,NULL,NULL,NULL,1);
CREATE TABLE "dialogs_embeddinguse" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "agent" varchar(80) NOT NULL, "provider" varchar(80) NOT NULL, "model" varchar(120) NOT NULL, "calls" integer unsigned NOT NULL CHECK ("calls" >= 0), "prompt_tokens" bigint unsigned NOT NULL CHECK ("prompt_tokens" >= 0), "cost_usd" decimal NOT NULL, "unpriced" integer unsigned NOT NULL CHECK ("unpriced" >= 0), "person_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "key_id" bigint NULL REFERENCES "dialogs_apikey" ("id") DEFERRABLE INITIALLY DEFERRED, "began_at" datetime NOT NULL, CONSTRAINT "embedding_use_unique" UNIQUE ("person_id", "key_id", "began_at", "agent", "provider", "model"));
INSERT INTO "dialogs_embeddinguse" VALUES(1,'agent-0','provider-0','model-0',1,1,0.25,1,1,1,'2026-11-20 12:30:00');
INSERT INTO "dialogs_embeddinguse" VALUES(2,'agent-1','provider-1','model-1',2,2,0.5,2,2,NULL,'2026-11-21 12:30:00');
CREATE TABLE "dialogs_event" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "seq" integer unsigned NOT NULL CHECK ("seq" >= 0), "type" varchar(24) NOT NULL, "data" text NOT NULL CHECK ((JSON_VALID("data") OR "data" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, "more" text DEFAULT '' NOT NULL, CONSTRAINT "event_seq_unique" UNIQUE ("dialog_id", "seq"));
INSERT INTO "dialogs_event" VALUES(1,1,'reminder','{"count": 1}','2026-11-25 21:53:42.999641','7114aa54e9554920815321a5f7185c6d',',205,["turn",1],["state","queued",""],876,["turn",2],2293,["state","generating",""],3248,["generation",1,"reply",1,"running"],6734,["generation",1,"reply",1,"kept"],["turn",3],["health","healthy",null,2638,666,3304,6500,"context_length",3500,5850,0.40584615384615386,0.7537142857142857],["turn",1],["turn",2],6932,["generation",4,"reply",1,"running"],8138,["generation",4,"reply",1,"kept"],["turn",4],["health","healthy",null,3313,848,4161,6500,"context_length",3500,5850,0.5096923076923077,0.9465714285714286],["turn",2],["state","idle",""],8823,["state","queued",""],8886,["state","generating",""],8968,["round",{"number":2,"cause":"person"}],["health","unknown","awaiting_report",null,null,null,6500,"context_length",3500,5850,null,null]');
INSERT INTO "dialogs_event" VALUES(2,1,'reminder','{"count": 1}','2026-11-25 21:53:44.500164','530644b432b14c13bffaaf446f855a6e',',112,["turn",1],["state","queued",""],251,["turn",2],790,["state","generating",""],1847,["generation",2,"reply",1,"running"],4486,["generation",2,"reply",1,"kept"],["turn",3],["health","healthy",null,656,55,711,8000,"context_length",4000,7200,0.082,0.164],4811,["question",{"id":"9e8f0368-ee6d-4fef-b6f5-482a002d72e2","kind":"question","state":"open"}],["state","waiting",""]');
INSERT INTO "dialogs_event" VALUES(3,1,'reminder','{"count": 1}','2026-11-25 21:53:44.965401','c1aa43d1e8dc44358af2b78f7d5028d1',',119,["turn",1],["state","queued",""],210,["turn",2],419,["state","generating",""],4004,["generation",3,"reply",1,"running"],4826,["generation",3,"reply",1,"kept"],["turn",3],["health","healthy",null,875,276,1151,2600,"context_length",2200,2340,0.33653846153846156,0.3977272727272727],["turn",1],["turn",2],4951,["generation",5,"reply",1,"running"],5459,["generation",5,"reply",1,"kept"],["turn",4],["health","healthy",null,1154,229,1383,2600,"context_length",2200,2340,0.44384615384615383,0.5245454545454545],["turn",2],["state","idle",""]');
INSERT INTO "dialogs_event" VALUES(4,22,'state','{"state": "idle", "failure": ""}','2026-11-25 21:53:52.023149','7114aa54e9554920815321a5f7185c6d','');
CREATE TABLE "dialogs_forcingrefusal" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "provider" varchar(80) NOT NULL, "model" varchar(120) NOT NULL, "reason" text NOT NULL, "refused_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, CONSTRAINT "one_refusal_per_model" UNIQUE ("provider", "model"));
INSERT INTO "dialogs_forcingrefusal" VALUES(1,'provider-0','model-0','reason 0: it''s "quoted"
Grüße, 世界','2026-11-20 12:30:00');
INSERT INTO "dialogs_forcingrefusal" VALUES(2,'provider-1','model-1','reason 1: it''s "quoted"
Grüße, 世界','2026-11-21 12:30:00');
CREATE TABLE "dialogs_generation" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "round_number" integer unsigned NOT NULL CHECK ("round_number" >= 0), "purpose" varchar(12) NOT NULL, "outcome" varchar(10) NOT NULL, "attempt" smallint unsigned NOT NULL CHECK ("attempt" >= 0), "epoch" integer unsigned NOT NULL CHECK ("epoch" >= 0), "provider" varchar(80) NOT NULL, "model" varchar(120) NOT NULL, "answers_seq" integer unsigned NULL CHECK ("answers_seq" >= 0), "guided" bool NOT NULL, "clear_episode" integer unsigned NULL CHECK ("clear_episode" >= 0), "prompt_tokens" integer unsigned NULL CHECK ("prompt_tokens" >= 0), "completion_tokens" integer unsigned NULL CHECK ("completion_tokens" >= 0), "total_tokens" integer unsigned NULL CHECK ("total_tokens" >= 0), "frame" varchar(32) NOT NULL, "base" varchar(40) NOT NULL, "request_chars" integer unsigned NOT NULL CHECK ("request_chars" >= 0), "est_prompt_tokens" integer unsigned NULL CHECK ("est_prompt_tokens" >= 0), "cursor" varchar(200) NOT NULL, "finish_reason" varchar(40) NOT NULL, "skipped_calls" smallint unsigned NOT NULL CHECK ("skipped_calls" >= 0), "error_kind" varchar(24) NOT NULL, "error" text NOT NULL, "started_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "first_token_ms" integer unsigned NULL CHECK ("first_token_ms" >= 0), "finished_at" datetime NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, "recalled" text NOT NULL CHECK ((JSON_VALID("recalled") OR "recalled" IS NULL)), "est_tools_tokens" integer unsigned NULL CHECK ("est_tools_tokens" >= 0), "cache_read_tokens" integer unsigned NULL CHECK ("cache_read_tokens" >= 0), "cache_write_tokens" integer unsigned NULL CHECK ("cache_write_tokens" >= 0), "cost_usd" decimal NULL, "reasoning_tokens" integer unsigned NULL CHECK ("reasoning_tokens" >= 0), "sent" text NULL CHECK ((JSON_VALID("sent") OR "sent" IS NULL)), "key_id" bigint NULL REFERENCES "dialogs_apikey" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "dialogs_generation" VALUES(1,1,'reply','kept',1,1,'demo','guide',1,0,NULL,2638,666,3304,'d359caea0f5196758ab1aa2bbc2ac149','1:0',2711,NULL,'1','stop',0,'','','2026-11-25 21:53:46.239418',140,'2026-11-25 21:53:49.668954','7114aa54e9554920815321a5f7185c6d','[]',NULL,NULL,NULL,NULL,NULL,'"[\"74y-lRcMAgSCzCSYdBU51iIcgHmFqCpzXDo6PPQfBsw\",1,1,[56,2550,0,9,0,96],\"5uh0fLjkxMathz45h_UdJw\",\"LJzrYGIDRinaudQvJ57E9A\",\"NNdejQ8XPZ1yMMJ5S3SXyQ\",null,0,\"JVVnP3rDS3IK0xvpjfWNLA\"]"',1);
INSERT INTO "dialogs_generation" VALUES(2,1,'reply','kept',1,1,'demo','asks',1,0,NULL,656,55,711,'c8c0c638d89e03ab85c8fb06067716ea','1:0',2695,NULL,'1','tool_calls',0,'','','2026-11-25 21:53:46.337118',42,'2026-11-25 21:53:48.782584','530644b432b14c13bffaaf446f855a6e','[]',NULL,NULL,NULL,NULL,NULL,'"[\"IA5CAoTXFEszo2hcWMRu-9SAMvPCf3OIEq6mE-Q3FDs\",1,1,[40,2550,0,9,0,96],\"l6vD7RKZljQ2TDioUMvZlg\",\"LJzrYGIDRinaudQvJ57E9A\",\"NNdejQ8XPZ1yMMJ5S3SXyQ\",null,0,\"c6lfrdfp78BCPGGgvDZl1g\"]"',1);
INSERT INTO "dialogs_generation" VALUES(3,1,'reply','kept',1,1,'demo','keeper',1,0,NULL,875,276,1151,'3b96a99505128a7545f4448befe7d57e','1:0',2698,1002,'1','stop',0,'','','2026-11-25 21:53:48.967419',22,'2026-11-25 21:53:49.734295','c1aa43d1e8dc44358af2b78f7d5028d1','[]',949,NULL,NULL,NULL,NULL,'"[\"KxUss3EHOPR4Js6cg0GUIfxPpjALKAv-SjBLq5USwwg\",1,1,[43,2550,0,9,0,96],\"FbxdRXcHiKkiWjXlUHVkSw\",\"LJzrYGIDRinaudQvJ57E9A\",\"NNdejQ8XPZ1yMMJ5S3SXyQ\",null,0,\"GPf1uGb1YfDEZ1Fm3fVqyA\"]"',1);
INSERT INTO "dialogs_generation" VALUES(4,1,'reply','kept',1,1,'demo','guide',2,0,NULL,3313,848,4161,'d359caea0f5196758ab1aa2bbc2ac149','1:0',3386,1188,'2','stop',0,'','','2026-11-25 21:53:49.897469',15,'2026-11-25 21:53:51.115003','7114aa54e9554920815321a5f7185c6d','[]',949,NULL,NULL,NULL,NULL,'"[\"TUeCTKtSS8tpFJM0tC69YWLthjVF4SIcRXzLYq5hkh8\",3,3,[56,2550,0,684,0,96],\"5uh0fLjkxMathz45h_UdJw\",\"LJzrYGIDRinaudQvJ57E9A\",\"NNdejQ8XPZ1yMMJ5S3SXyQ\",null,0,\"JVVnP3rDS3IK0xvpjfWNLA\"]"',1);
INSERT INTO "dialogs_generation" VALUES(5,1,'reply','kept',1,1,'demo','keeper',2,0,NULL,1154,229,1383,'3b96a99505128a7545f4448befe7d57e','1:0',3535,1336,'2','stop',0,'','','2026-11-25 21:53:49.913006',20,'2026-11-25 21:53:50.393061','c1aa43d1e8dc44358af2b78f7d5028d1','[]',949,NULL,NULL,NULL,NULL,'"[\"xqGJM9B5EfIahQ3SmuvxrmGbXTR2v0r0XbLCy_z47z8\",3,3,[43,2550,0,846,0,96],\"FbxdRXcHiKkiWjXlUHVkSw\",\"LJzrYGIDRinaudQvJ57E9A\",\"NNdejQ8XPZ1yMMJ5S3SXyQ\",null,0,\"GPf1uGb1YfDEZ1Fm3fVqyA\"]"',1);
CREATE TABLE "dialogs_identity" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "issuer" varchar(255) NOT NULL, "subject" varchar(255) NOT NULL, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "identity_unique" UNIQUE ("issuer", "subject"));
INSERT INTO "dialogs_identity" VALUES(1,'issuer-0','subject-0',1);
INSERT INTO "dialogs_identity" VALUES(2,'issuer-1','subject-1',2);
CREATE TABLE "dialogs_identity_groups" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "identity_id" bigint NOT NULL REFERENCES "dialogs_identity" ("id") DEFERRABLE INITIALLY DEFERRED, "group_id" integer NOT NULL REFERENCES "auth_group" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "dialogs_identity_groups" VALUES(1,1,1);
INSERT INTO "dialogs_identity_groups" VALUES(2,2,1);
CREATE TABLE "dialogs_personsettings" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "theme" varchar(8) NOT NULL, "notifications" bool NOT NULL, "show_breaking_progress" bool NOT NULL, "progress_detail" varchar(8) NOT NULL, "auto_hide_seconds" smallint unsigned NOT NULL CHECK ("auto_hide_seconds" >= 0), "highlight_p1" bool NOT NULL, "user_id" integer NOT NULL UNIQUE REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "recall" bool NOT NULL, "monthly_budget_usd" decimal NULL, "question_mails" bool DEFAULT 1 NOT NULL, "language" varchar(12) DEFAULT '' NOT NULL, "seen_language" varchar(12) DEFAULT '' NOT NULL, "seen_zone" varchar(64) DEFAULT '' NOT NULL, "zone" varchar(64) DEFAULT '' NOT NULL, CONSTRAINT "auto_hide_1_to_10" CHECK ("auto_hide_seconds" BETWEEN 1 AND 10));
INSERT INTO "dialogs_personsettings" VALUES(1,'system',0,0,'minimal',1,0,1,0,0.25,0,'language-0','seen_languag','seen_zone-0','zone-0');
INSERT INTO "dialogs_personsettings" VALUES(2,'light',1,1,'normal',2,1,2,1,NULL,1,'language-1','seen_languag','seen_zone-1','zone-1');
CREATE TABLE "dialogs_prompttemplate" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "name" varchar(40) NOT NULL, "text" text NOT NULL, "owner_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "one_template_per_name" UNIQUE ("owner_id", "name"));
INSERT INTO "dialogs_prompttemplate" VALUES(1,'name-0','text 0: it''s "quoted"
Grüße, 世界',1);
INSERT INTO "dialogs_prompttemplate" VALUES(2,'name-1','text 1: it''s "quoted"
Grüße, 世界',2);
CREATE TABLE "dialogs_pushsubscription" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "address" varchar(1000) NOT NULL UNIQUE, "key" varchar(88) NOT NULL, "secret" varchar(24) NOT NULL, "browser" varchar(60) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "dialogs_pushsubscription" VALUES(1,'address-0','key-0','secret-0','browser-0','2026-11-20 12:30:00',1);
INSERT INTO "dialogs_pushsubscription" VALUES(2,'address-1','key-1','secret-1','browser-1','2026-11-21 12:30:00',2);
CREATE TABLE "dialogs_question" ("id" char(32) NOT NULL PRIMARY KEY, "kind" varchar(24) NOT NULL, "state" varchar(10) NOT NULL, "text" text NOT NULL, "tool_call_id" varchar(120) NOT NULL, "clear_episode" integer unsigned NULL CHECK ("clear_episode" >= 0), "draft" text NOT NULL, "answer" text NOT NULL, "action" varchar(16) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "resolved_at" datetime NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, "resolved_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "escalated_at" datetime NULL, "choices" text DEFAULT '[]' NOT NULL CHECK ((JSON_VALID("choices") OR "choices" IS NULL)), "escalations" smallint unsigned DEFAULT 0 NOT NULL CHECK ("escalations" >= 0), "approves" varchar(120) DEFAULT '' NOT NULL);
INSERT INTO "dialogs_question" VALUES('9e8f0368ee6d4fefb6f5482a002d72e2','question','open','What shall we call the new release: ''Heron'' or ''Kingfisher''? Another name is fine, too.','call_2_1',NULL,'','','','2026-11-25 21:53:49.213090',NULL,'530644b432b14c13bffaaf446f855a6e',NULL,NULL,'[]',0,'');
CREATE TABLE "dialogs_recallchoice" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "seq" integer unsigned NOT NULL CHECK ("seq" >= 0), "choice" varchar(10) NOT NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "recall_choice_unique" UNIQUE ("dialog_id", "seq"));
INSERT INTO "dialogs_recallchoice" VALUES(1,1,'pinned','530644b432b14c13bffaaf446f855a6e');
INSERT INTO "dialogs_recallchoice" VALUES(2,2,'dismissed','7114aa54e9554920815321a5f7185c6d');
CREATE TABLE "dialogs_reminder" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "position" smallint unsigned NOT NULL CHECK ("position" >= 0), "text" text NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "dialogs_reminder" VALUES(1,0,'Name the port.','2026-11-25 21:53:42.987311','7114aa54e9554920815321a5f7185c6d');
INSERT INTO "dialogs_reminder" VALUES(2,0,'Name the port.','2026-11-25 21:53:44.494799','530644b432b14c13bffaaf446f855a6e');
INSERT INTO "dialogs_reminder" VALUES(3,0,'Name the port.','2026-11-25 21:53:44.954653','c1aa43d1e8dc44358af2b78f7d5028d1');
CREATE TABLE "dialogs_requestpart" ("digest" varchar(32) NOT NULL PRIMARY KEY, "text" text NOT NULL, "dialog_id" char(32) NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "dialogs_requestpart" VALUES('15bc5d45770788a9225a35e55075644b','Plan repairs with the person, list by list.',NULL);
INSERT INTO "dialogs_requestpart" VALUES('18f7f5b866f561f0c4675166ddf56ac8','[[1,"[reminder 3] Name the port."]]','c1aa43d1e8dc44358af2b78f7d5028d1');
INSERT INTO "dialogs_requestpart" VALUES('2555673f7ac34b720ad31be98df58d2c','[[1,"[reminder 1] Name the port."]]','7114aa54e9554920815321a5f7185c6d');
INSERT INTO "dialogs_requestpart" VALUES('2c9ceb6062034629dab9d42f279ec4f4','[["clear_mind","Start a fresh round. Everything said so far leaves your sight; reminders stay, and reminder_content, your re-entry package, comes first. Messages that wait for an answer come along.",{"type":"object","properties":{"reminder_content":{"type":"string","description":"the re-entry package"}},"required":["reminder_content"],"additionalProperties":false}],["add_reminder","Keep a text in sight in every request until you delete it.",{"type":"object","properties":{"content":{"type":"string"},"position":{"type":"integer","minimum":0,"description":"place in the list; 0 is first"}},"required":["content"],"additionalProperties":false}],["update_reminder","Replace a reminder''s text.",{"type":"object","properties":{"id":{"type":"integer","description":"the number in [reminder N]"},"content":{"type":"string"}},"required":["id","content"],"additionalProperties":false}],["delete_reminder","Delete a reminder.",{"type":"object","properties":{"id":{"type":"integer","description":"the number in [reminder N]"}},"required":["id"],"additionalProperties":false}],["ask_human","Ask a person something that only they can decide or know. The answer comes back as this call''s result.",{"type":"object","properties":{"question":{"type":"string","minLength":1},"choices":{"type":"array","items":{"type":"string","minLength":1,"maxLength":200},"maxItems":8,"description":"short answers to choose from, where there are some; the person may write another"}},"required":["question"],"additionalProperties":false}],["search_archive","Search what was said earlier in this dialog, in all rounds, also what is no longer in your sight.",{"type":"object","properties":{"query":{"type":"string","minLength":2,"description":"a few words"}},"required":["query"],"additionalProperties":false}],["read_archive","Read what search_archive found, or list the turns of a summary.",{"type":"object","properties":{"seq":{"type":"integer","minimum":1,"maximum":2000000000},"unit":{"type":"integer","minimum":1,"maximum":2000000000},"turns":{"type":"string"},"offset":{"type":"integer","minimum":0,"description":"in characters"},"limit":{"type":"integer","minimum":1,"maximum":16000}},"required":[],"additionalProperties":false}],["read_artifact","Read a part of a tool result that was too large to be shown.",{"type":"object","properties":{"id":{"type":"integer","minimum":1,"maximum":2000000000},"offset":{"type":"integer","minimum":0,"description":"in characters"},"limit":{"type":"integer","minimum":1,"maximum":16000}},"required":["id"],"additionalProperties":false}]]',NULL);
INSERT INTO "dialogs_requestpart" VALUES('34d75e8d0f173d9d7230c2794b7497c9','{"by":"","kind":"scripted","supports_tool_choice":null,"forced_tool":"","is_bound":false,"max_tokens_field":"max_tokens","output_length":null,"thinking":"","echo":"never","modalities":["text","image","file"],"image_bounds":{"most":0,"most_bytes":0,"large":0,"most_with_large":0},"model_params":{},"thinking_off":{}}',NULL);
INSERT INTO "dialogs_requestpart" VALUES('73a95fadd7e9efc0423c61a0bc3665d6','[[1,"[reminder 2] Name the port."]]','530644b432b14c13bffaaf446f855a6e');
INSERT INTO "dialogs_requestpart" VALUES('97abc3ed12999634364c38a850cbd996','Ask a person before you decide anything.',NULL);
INSERT INTO "dialogs_requestpart" VALUES('e6e8747cb8e4c4c6ad873e3987f51d27','Show a newcomer how a long conversation is kept healthy.',NULL);
CREATE TABLE "dialogs_round" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "number" integer unsigned NOT NULL CHECK ("number" >= 0), "cause" varchar(12) NOT NULL, "package" text NOT NULL, "carried" text NOT NULL CHECK ((JSON_VALID("carried") OR "carried" IS NULL)), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, CONSTRAINT "round_number_unique" UNIQUE ("dialog_id", "number"));
INSERT INTO "dialogs_round" VALUES(1,1,'start','','[]','2026-11-25 21:53:42.069146','7114aa54e9554920815321a5f7185c6d');
INSERT INTO "dialogs_round" VALUES(2,1,'start','','[]','2026-11-25 21:53:44.371318','530644b432b14c13bffaaf446f855a6e');
INSERT INTO "dialogs_round" VALUES(3,1,'start','','[]','2026-11-25 21:53:44.827004','c1aa43d1e8dc44358af2b78f7d5028d1');
INSERT INTO "dialogs_round" VALUES(4,2,'person','What was said.','[]','2026-11-25 21:53:51.949083','7114aa54e9554920815321a5f7185c6d');
CREATE TABLE "dialogs_sitesettings" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "singleton" bool NOT NULL UNIQUE, "keep_discarded_outputs" bool NOT NULL, "webhook_url" varchar(200) NOT NULL, "pruning_agent_id" varchar(64) NULL REFERENCES "dialogs_agent" ("id") DEFERRABLE INITIALLY DEFERRED, "generation" varchar(32) DEFAULT '' NOT NULL, "write_titles" bool DEFAULT 1 NOT NULL, "question_deadline_minutes" integer unsigned NULL CHECK ("question_deadline_minutes" >= 0), "sealed_webhook_secret" text DEFAULT '' NOT NULL, "sealed_push_key" text DEFAULT '' NOT NULL, "sealed_former_webhook_secret" text DEFAULT '' NOT NULL, "webhook_secret_changed_at" datetime NULL, "escalation_address" text DEFAULT '' NOT NULL);
INSERT INTO "dialogs_sitesettings" VALUES(1,0,0,'https://example.org/0','demo','generation-0',0,1,'sealed_webhook_secret 0: it''s "quoted"
Grüße, 世界','sealed_push_key 0: it''s "quoted"
Grüße, 世界','sealed_former_webhook_secret 0: it''s "quoted"
Grüße, 世界','2026-11-20 12:30:00','escalation_address 0: it''s "quoted"
Grüße, 世界');
INSERT INTO "dialogs_sitesettings" VALUES(2,1,1,'https://example.org/1',NULL,'19978b27acf9423682183bbfb926bd2c',1,NULL,'sealed_webhook_secret 1: it''s "quoted"
Grüße, 世界','sealed_push_key 1: it''s "quoted"
Grüße, 世界','sealed_former_webhook_secret 1: it''s "quoted"
Grüße, 世界',NULL,'escalation_address 1: it''s "quoted"
Grüße, 世界');
CREATE TABLE "dialogs_toolserver" ("server_id" varchar(32) NOT NULL PRIMARY KEY, "url" varchar(500) NOT NULL, "sealed_key" text DEFAULT '' NOT NULL, "enabled" bool DEFAULT 1 NOT NULL, "added_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL);
INSERT INTO "dialogs_toolserver" VALUES('','https://example.org/0','sealed_key 0: it''s "quoted"
Grüße, 世界',0,'2026-11-20 12:30:00');
CREATE TABLE "dialogs_turn" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "seq" integer unsigned NOT NULL CHECK ("seq" >= 0), "position" integer unsigned NULL CHECK ("position" >= 0), "round_number" integer unsigned NOT NULL CHECK ("round_number" >= 0), "role" varchar(10) NOT NULL, "status" varchar(12) NOT NULL, "text" text NOT NULL, "tool_calls" text NULL CHECK ((JSON_VALID("tool_calls") OR "tool_calls" IS NULL)), "tool_call_id" varchar(120) NOT NULL, "tool_name" varchar(120) NOT NULL, "provider_items" text NULL CHECK ((JSON_VALID("provider_items") OR "provider_items" IS NULL)), "client_message_id" varchar(120) NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, "generation_id" bigint NULL REFERENCES "dialogs_generation" ("id") DEFERRABLE INITIALLY DEFERRED, "author_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "reasoning" text NULL CHECK ((JSON_VALID("reasoning") OR "reasoning" IS NULL)), "liked" bool NULL, "attachments" text NULL CHECK ((JSON_VALID("attachments") OR "attachments" IS NULL)), CONSTRAINT "turn_seq_unique" UNIQUE ("dialog_id", "seq"), CONSTRAINT "turn_client_message_unique" UNIQUE ("dialog_id", "client_message_id"));
INSERT INTO "dialogs_turn" VALUES(1,1,1,1,'user','answered','Message 0',NULL,'','',NULL,'m0','2026-11-25 21:53:43.195183','7114aa54e9554920815321a5f7185c6d',NULL,1,NULL,NULL,NULL);
INSERT INTO "dialogs_turn" VALUES(2,2,3,1,'user','answered','Message 1',NULL,'','',NULL,'m1','2026-11-25 21:53:43.773046','7114aa54e9554920815321a5f7185c6d',NULL,1,NULL,NULL,NULL);
INSERT INTO "dialogs_turn" VALUES(3,1,1,1,'user','answering','Message 0',NULL,'','',NULL,'m0','2026-11-25 21:53:44.604256','530644b432b14c13bffaaf446f855a6e',NULL,1,NULL,NULL,NULL);
INSERT INTO "dialogs_turn" VALUES(4,2,NULL,1,'user','queued','Message 1',NULL,'','',NULL,'m1','2026-11-25 21:53:44.719222','530644b432b14c13bffaaf446f855a6e',NULL,1,NULL,NULL,NULL);
INSERT INTO "dialogs_turn" VALUES(5,1,1,1,'user','answered','Message 0',NULL,'','',NULL,'m0','2026-11-25 21:53:45.074689','c1aa43d1e8dc44358af2b78f7d5028d1',NULL,1,NULL,NULL,NULL);
INSERT INTO "dialogs_turn" VALUES(6,2,3,1,'user','answered','Message 1',NULL,'','',NULL,'m1','2026-11-25 21:53:45.154999','c1aa43d1e8dc44358af2b78f7d5028d1',NULL,1,NULL,NULL,NULL);
INSERT INTO "dialogs_turn" VALUES(7,3,2,1,'assistant','complete','Hello, I am **Asker**. I can do a lot by myself, but some things only a person can decide. So before I go on:
','[{"id": "call_2_1", "name": "ask_human", "arguments": "{\"question\":\"What shall we call the new release: ''Heron'' or ''Kingfisher''? Another name is fine, too.\"}"}]','','',NULL,NULL,'2026-11-25 21:53:48.802514','530644b432b14c13bffaaf446f855a6e',2,NULL,NULL,NULL,NULL);
INSERT INTO "dialogs_turn" VALUES(8,3,2,1,'assistant','complete','Welcome to **Dominds**! It lets people and agents talk for as long as they like, and takes care of what long talks do to a
model: the fuller its context, the worse it works.

Look at the ring below the message box. It shows how many tokens my last request took, as *reported by the
provider* and never guessed, and how much of my window that is:

| colour | meaning |
|---|---|
| green | all is well |
| yellow | larger than is good for the work |
| red | nearly full |
| gray | not known, and so not called healthy |

My window is tiny on purpose: 6,500 tokens, yellow above 3,500, red above 5,850. A few messages fill it.

Say anything to go on. **next** will do.
',NULL,'','',NULL,NULL,'2026-11-25 21:53:49.683204','7114aa54e9554920815321a5f7185c6d',1,NULL,NULL,NULL,NULL);
INSERT INTO "dialogs_turn" VALUES(9,3,2,1,'assistant','complete','I am **Keeper**. Each message of ours gets a score from 0 to 100, for how recent it is, who said it, and whether it speaks of failures
or tools. Above 80 % of my 2,600 tokens the lowest scores leave my sight.

Let us plan repairs. List 1:

```text
1.1  test    the pump         5.9 h   349.00  open
1.2  paint   the north gate   4.2 h   158.00  open
1.3  seal    the old sign     9.5 h   468.00  done
1.4  label   window B2        1.0 h    37.00  done
1.5  sand    the pump         2.8 h   192.00  open
1.6  seal    the fence post   5.9 h    78.00  done
1.7  clean   socket 7         3.2 h    17.00  open
1.8  measure the shed roof    8.1 h    42.00  open
1.9  order   the old sign     5.0 h    38.00  open
1.10 test    two benches      8.9 h   275.00  open
1.11 measure the shed roof    1.0 h    41.00  open
```

Say **next**.
',NULL,'','',NULL,NULL,'2026-11-25 21:53:49.738579','c1aa43d1e8dc44358af2b78f7d5028d1',3,NULL,NULL,NULL,NULL);
INSERT INTO "dialogs_turn" VALUES(10,4,4,1,'assistant','complete','List 2. Remember this one: *the pump failed twice, error E17; do not switch it on before the seal is replaced.*

```text
2.1  seal    the shed roof    4.2 h    39.00  open
2.2  oil     the north gate   9.3 h    82.00  done
2.3  test    the fence post   9.6 h   426.00  open
2.4  test    the pump         2.4 h   330.00  done
2.5  label   the rain barrel  1.6 h   442.00  done
2.6  label   hinge 4          8.2 h   125.00  open
2.7  order   window B2        1.1 h   181.00  open
2.8  order   the north gate   5.8 h   357.00  done
2.9  test    the pump         5.3 h    53.00  open
2.10 paint   the shed roof    5.3 h   440.00  open
2.11 replace two benches      4.6 h   178.00  open
```
',NULL,'','',NULL,NULL,'2026-11-25 21:53:50.410250','c1aa43d1e8dc44358af2b78f7d5028d1',5,NULL,NULL,NULL,NULL);
INSERT INTO "dialogs_turn" VALUES(11,4,4,1,'assistant','complete','Good. While you read this, your message was stored before it was accepted, a worker took the dialog, asked me, and wrote
down the answer, its usage and the state of my health in one go. If that worker had died, another would have taken over.

A newcomer''s path through the code, for those who like to read it:

```python
def drive(dialog_id):
    while dialog.owes_work:
        match decide(policies, context):
            case Proceed() as plan: generate(plan)
            case Rewrite() as decision: rewrite(decision)
            case Suspend() as decision: ask_a_human(decision)
```

Policies *decide*, the driver *performs*. That is why there are several ways to treat a long context, and you may pick one
for each agent: none, **breaking**, **retention**, or **autocompaction** for local models.

Say **next**, and keep an eye on the colour.
',NULL,'','',NULL,NULL,'2026-11-25 21:53:51.123012','7114aa54e9554920815321a5f7185c6d',4,NULL,NULL,NULL,NULL);
CREATE TABLE "django_admin_log" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "object_id" text NULL, "object_repr" varchar(200) NOT NULL, "action_flag" smallint unsigned NOT NULL CHECK ("action_flag" >= 0), "change_message" text NOT NULL, "content_type_id" integer NULL REFERENCES "django_content_type" ("id") DEFERRABLE INITIALLY DEFERRED, "user_id" integer NOT NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "action_time" datetime NOT NULL);
CREATE TABLE "django_content_type" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "app_label" varchar(100) NOT NULL, "model" varchar(100) NOT NULL);
INSERT INTO "django_content_type" VALUES(1,'admin','logentry');
INSERT INTO "django_content_type" VALUES(2,'auth','permission');
INSERT INTO "django_content_type" VALUES(3,'auth','group');
INSERT INTO "django_content_type" VALUES(4,'auth','user');
INSERT INTO "django_content_type" VALUES(5,'contenttypes','contenttype');
INSERT INTO "django_content_type" VALUES(6,'sessions','session');
INSERT INTO "django_content_type" VALUES(7,'health','healthsnapshot');
INSERT INTO "django_content_type" VALUES(8,'remediation','contextsettings');
INSERT INTO "django_content_type" VALUES(9,'remediation','proposal');
INSERT INTO "django_content_type" VALUES(10,'remediation','remediationrun');
INSERT INTO "django_content_type" VALUES(11,'remediation','removedunit');
INSERT INTO "django_content_type" VALUES(12,'remediation','cleanuptask');
INSERT INTO "django_content_type" VALUES(13,'remediation','contextevent');
INSERT INTO "django_content_type" VALUES(14,'remediation','preparedrewrite');
INSERT INTO "django_content_type" VALUES(15,'dialogs','agent');
INSERT INTO "django_content_type" VALUES(16,'dialogs','dialog');
INSERT INTO "django_content_type" VALUES(17,'dialogs','apikey');
INSERT INTO "django_content_type" VALUES(18,'dialogs','artifact');
INSERT INTO "django_content_type" VALUES(19,'dialogs','event');
INSERT INTO "django_content_type" VALUES(20,'dialogs','generation');
INSERT INTO "django_content_type" VALUES(21,'dialogs','personsettings');
INSERT INTO "django_content_type" VALUES(22,'dialogs','question');
INSERT INTO "django_content_type" VALUES(23,'dialogs','reminder');
INSERT INTO "django_content_type" VALUES(24,'dialogs','round');
INSERT INTO "django_content_type" VALUES(25,'dialogs','sitesettings');
INSERT INTO "django_content_type" VALUES(26,'dialogs','turn');
INSERT INTO "django_content_type" VALUES(27,'dialogs','client');
INSERT INTO "django_content_type" VALUES(28,'dialogs','recallchoice');
INSERT INTO "django_content_type" VALUES(29,'dialogs','forcingrefusal');
INSERT INTO "django_content_type" VALUES(30,'dialogs','requestpart');
INSERT INTO "django_content_type" VALUES(31,'dialogs','attachment');
INSERT INTO "django_content_type" VALUES(32,'dialogs','embeddinguse');
INSERT INTO "django_content_type" VALUES(33,'dialogs','connectedprovider');
INSERT INTO "django_content_type" VALUES(34,'dialogs','delivery');
INSERT INTO "django_content_type" VALUES(35,'dialogs','identity');
INSERT INTO "django_content_type" VALUES(36,'dialogs','prompttemplate');
INSERT INTO "django_content_type" VALUES(37,'dialogs','pushsubscription');
INSERT INTO "django_content_type" VALUES(38,'dialogs','toolserver');
INSERT INTO "django_content_type" VALUES(39,'dialogs','calltotals');
CREATE TABLE "django_migrations" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "app" varchar(255) NOT NULL, "name" varchar(255) NOT NULL, "applied" datetime NOT NULL);
INSERT INTO "django_migrations" VALUES(1,'contenttypes','0001_initial','2026-11-25 21:55:53.054356');
INSERT INTO "django_migrations" VALUES(2,'auth','0001_initial','2026-11-25 21:55:53.150299');
INSERT INTO "django_migrations" VALUES(3,'admin','0001_initial','2026-11-25 21:55:53.203182');
INSERT INTO "django_migrations" VALUES(4,'admin','0002_logentry_remove_auto_add','2026-11-25 21:55:53.266475');
INSERT INTO "django_migrations" VALUES(5,'admin','0003_logentry_add_action_flag_choices','2026-11-25 21:55:53.294365');
INSERT INTO "django_migrations" VALUES(6,'contenttypes','0002_remove_content_type_name','2026-11-25 21:55:53.413596');
INSERT INTO "django_migrations" VALUES(7,'auth','0002_alter_permission_name_max_length','2026-11-25 21:55:53.512437');
INSERT INTO "django_migrations" VALUES(8,'auth','0003_alter_user_email_max_length','2026-11-25 21:55:53.784982');
INSERT INTO "django_migrations" VALUES(9,'auth','0004_alter_user_username_opts','2026-11-25 21:55:53.853056');
INSERT INTO "django_migrations" VALUES(10,'auth','0005_alter_user_last_login_null','2026-11-25 21:55:53.898613');
INSERT INTO "django_migrations" VALUES(11,'auth','0006_require_contenttypes_0002','2026-11-25 21:55:53.922892');
INSERT INTO "django_migrations" VALUES(12,'auth','0007_alter_validators_add_error_messages','2026-11-25 21:55:53.979954');
INSERT INTO "django_migrations" VALUES(13,'auth','0008_alter_user_username_max_length','2026-11-25 21:55:54.061661');
INSERT INTO "django_migrations" VALUES(14,'auth','0009_alter_user_last_name_max_length','2026-11-25 21:55:54.135558');
INSERT INTO "django_migrations" VALUES(15,'auth','0010_alter_group_name_max_length','2026-11-25 21:55:54.194096');
INSERT INTO "django_migrations" VALUES(16,'auth','0011_update_proxy_permissions','2026-11-25 21:55:54.254640');
INSERT INTO "django_migrations" VALUES(17,'auth','0012_alter_user_first_name_max_length','2026-11-25 21:55:54.308354');
INSERT INTO "django_migrations" VALUES(18,'dialogs','0001_initial','2026-11-25 21:55:58.505767');
INSERT INTO "django_migrations" VALUES(19,'dialogs','0002_archive_dialogs','2026-11-25 21:55:58.736589');
INSERT INTO "django_migrations" VALUES(20,'dialogs','0003_events_that_follow_in_one_row','2026-11-25 21:55:58.978269');
INSERT INTO "django_migrations" VALUES(21,'dialogs','0004_indexes_that_updates_leave_alone','2026-11-25 21:55:59.539403');
INSERT INTO "django_migrations" VALUES(22,'dialogs','0005_plural_of_settings','2026-11-25 21:55:59.660524');
INSERT INTO "django_migrations" VALUES(23,'dialogs','0006_policies_by_name','2026-11-25 21:55:59.750244');
INSERT INTO "django_migrations" VALUES(24,'dialogs','0007_toolsets_and_model_params','2026-11-25 21:55:59.849102');
INSERT INTO "django_migrations" VALUES(25,'dialogs','0008_damaged_dialogs','2026-11-25 21:56:00.065227');
INSERT INTO "django_migrations" VALUES(26,'dialogs','0009_permissions_and_authors','2026-11-25 21:56:01.088230');
INSERT INTO "django_migrations" VALUES(27,'dialogs','0010_generation_of_the_database','2026-11-25 21:56:01.169907');
INSERT INTO "django_migrations" VALUES(28,'dialogs','0011_recall','2026-11-25 21:56:01.713387');
INSERT INTO "django_migrations" VALUES(29,'dialogs','0012_requests_that_grow','2026-11-25 21:56:02.750504');
INSERT INTO "django_migrations" VALUES(30,'dialogs','0013_turn_reasoning','2026-11-25 21:56:02.967493');
INSERT INTO "django_migrations" VALUES(31,'dialogs','0014_calibration_fit','2026-11-25 21:56:03.661114');
INSERT INTO "django_migrations" VALUES(32,'dialogs','0015_costs_and_budgets','2026-11-25 21:56:06.425355');
INSERT INTO "django_migrations" VALUES(33,'dialogs','0016_conversations_found_again','2026-11-25 21:56:08.066618');
INSERT INTO "django_migrations" VALUES(34,'dialogs','0017_origins_and_proxies','2026-11-25 21:56:11.426043');
INSERT INTO "django_migrations" VALUES(35,'dialogs','0018_source_of_imported_dialogs','2026-11-25 21:56:12.127933');
INSERT INTO "django_migrations" VALUES(36,'dialogs','0019_branches_and_feedback','2026-11-25 21:56:13.427106');
INSERT INTO "django_migrations" VALUES(37,'dialogs','0020_requests_that_were_sent','2026-11-25 21:56:14.033592');
INSERT INTO "django_migrations" VALUES(38,'dialogs','0021_home_and_titles','2026-11-25 21:56:15.431851');
INSERT INTO "django_migrations" VALUES(39,'dialogs','0022_attachments','2026-11-25 21:56:15.774705');
INSERT INTO "django_migrations" VALUES(40,'dialogs','0023_embedding_use','2026-11-25 21:56:16.003353');
INSERT INTO "django_migrations" VALUES(41,'dialogs','0024_connected_providers','2026-11-25 21:56:16.024675');
INSERT INTO "django_migrations" VALUES(42,'dialogs','0025_questions_of_refusals','2026-11-25 21:56:16.197858');
INSERT INTO "django_migrations" VALUES(43,'dialogs','0026_sharing','2026-11-25 21:56:16.981975');
INSERT INTO "django_migrations" VALUES(44,'dialogs','0027_deliveries','2026-11-25 21:56:18.144235');
INSERT INTO "django_migrations" VALUES(45,'dialogs','0028_budgets_of_keys','2026-11-25 21:56:19.024591');
INSERT INTO "django_migrations" VALUES(46,'dialogs','0029_prepared_rewrites','2026-11-25 21:56:19.116290');
INSERT INTO "django_migrations" VALUES(47,'dialogs','0030_identities','2026-11-25 21:56:19.383471');
INSERT INTO "django_migrations" VALUES(48,'dialogs','0031_prepare_by_default','2026-11-25 21:56:19.678050');
INSERT INTO "django_migrations" VALUES(49,'dialogs','0032_folders_and_templates','2026-11-25 21:56:20.677750');
INSERT INTO "django_migrations" VALUES(50,'dialogs','0033_webhook_rewrites','2026-11-25 21:56:20.764519');
INSERT INTO "django_migrations" VALUES(51,'dialogs','0034_charged_keys_and_system_messages','2026-11-25 21:56:22.587871');
INSERT INTO "django_migrations" VALUES(52,'dialogs','0035_web_push','2026-11-25 21:56:23.612068');
INSERT INTO "django_migrations" VALUES(53,'dialogs','0036_language','2026-11-25 21:56:23.838591');
INSERT INTO "django_migrations" VALUES(54,'dialogs','0037_indexes_of_long_lists','2026-11-25 21:56:24.273553');
INSERT INTO "django_migrations" VALUES(55,'dialogs','0038_choices_of_questions','2026-11-25 21:56:24.574142');
INSERT INTO "django_migrations" VALUES(56,'dialogs','0039_tool_servers','2026-11-25 21:56:24.605611');
INSERT INTO "django_migrations" VALUES(57,'dialogs','0040_lists_of_any_length','2026-11-25 21:56:25.715699');
INSERT INTO "django_migrations" VALUES(58,'dialogs','0041_plain_names_of_columns','2026-11-25 21:56:27.194204');
INSERT INTO "django_migrations" VALUES(59,'dialogs','0042_zones_and_former_secrets','2026-11-25 21:56:28.168020');
INSERT INTO "django_migrations" VALUES(60,'dialogs','0043_steps_of_escalation','2026-11-25 21:56:29.357547');
INSERT INTO "django_migrations" VALUES(61,'dialogs','0044_zones_and_totals_by_quarter','2026-11-25 21:56:32.714477');
INSERT INTO "django_migrations" VALUES(62,'dialogs','0045_indexes_of_foreign_keys','2026-11-25 21:56:36.582532');
INSERT INTO "django_migrations" VALUES(63,'dialogs','0046_tool_approval','2026-11-25 21:56:36.914258');
INSERT INTO "django_migrations" VALUES(64,'health','0001_initial','2026-11-25 21:56:37.148292');
INSERT INTO "django_migrations" VALUES(65,'health','0002_longer_limit_source','2026-11-25 21:56:37.250524');
INSERT INTO "django_migrations" VALUES(66,'remediation','0001_initial','2026-11-25 21:56:39.143372');
INSERT INTO "django_migrations" VALUES(67,'remediation','0002_plural_of_settings','2026-11-25 21:56:39.161519');
INSERT INTO "django_migrations" VALUES(68,'remediation','0003_policies_by_name','2026-11-25 21:56:39.394106');
INSERT INTO "django_migrations" VALUES(69,'remediation','0004_what_rewrites_save','2026-11-25 21:56:39.890277');
INSERT INTO "django_migrations" VALUES(70,'remediation','0005_prompts_and_facts_of_rewrites','2026-11-25 21:56:40.875850');
INSERT INTO "django_migrations" VALUES(71,'remediation','0006_prepared_rewrites','2026-11-25 21:56:41.214720');
INSERT INTO "django_migrations" VALUES(72,'sessions','0001_initial','2026-11-25 21:56:41.269458');
CREATE TABLE "django_session" ("session_key" varchar(40) NOT NULL PRIMARY KEY, "session_data" text NOT NULL, "expire_date" datetime NOT NULL);
CREATE TABLE "health_healthsnapshot" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "prompt_tokens" integer unsigned NULL CHECK ("prompt_tokens" >= 0), "completion_tokens" integer unsigned NULL CHECK ("completion_tokens" >= 0), "total_tokens" integer unsigned NULL CHECK ("total_tokens" >= 0), "model_context_limit" integer unsigned NULL CHECK ("model_context_limit" >= 0), "optimal_max_tokens" integer unsigned NOT NULL CHECK ("optimal_max_tokens" >= 0), "critical_max_tokens" integer unsigned NULL CHECK ("critical_max_tokens" >= 0), "hard_util" real NULL, "optimal_util" real NULL, "level" varchar(8) NOT NULL, "reason" varchar(24) NOT NULL, "generation_id" bigint NOT NULL UNIQUE REFERENCES "dialogs_generation" ("id") DEFERRABLE INITIALLY DEFERRED, "limit_source" varchar(60) NOT NULL, CONSTRAINT "snapshot_unknown_has_reason" CHECK ((("level" = 'unknown' OR "reason" = '') AND 1 = (CASE WHEN "level" = 'unknown' THEN 1 ELSE 0 END + CASE WHEN "reason" = '' THEN 1 ELSE 0 END))), CONSTRAINT "snapshot_no_zero_prompt" CHECK (NOT ("prompt_tokens" = 0 AND "prompt_tokens" IS NOT NULL)));
INSERT INTO "health_healthsnapshot" VALUES(1,656,55,711,8000,4000,7200,0.082,0.164,'healthy','',2,'context_length');
INSERT INTO "health_healthsnapshot" VALUES(2,2638,666,3304,6500,3500,5850,4.0584615384615385647e-01,7.53714285714285670003e-01,'healthy','',1,'context_length');
INSERT INTO "health_healthsnapshot" VALUES(3,875,276,1151,2600,2200,2340,3.36538461538461564082e-01,3.97727272727272707086e-01,'healthy','',3,'context_length');
INSERT INTO "health_healthsnapshot" VALUES(4,1154,229,1383,2600,2200,2340,4.4384615384615383471e-01,5.24545454545454536976e-01,'healthy','',5,'context_length');
INSERT INTO "health_healthsnapshot" VALUES(5,3313,848,4161,6500,3500,5850,5.09692307692307666755e-01,9.46571428571428619136e-01,'healthy','',4,'context_length');
CREATE TABLE "remediation_cleanuptask" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "reason" text NOT NULL, "state" varchar(4) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "done_at" datetime NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, "done_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "remediation_cleanuptask" VALUES(1,'reason 0: it''s "quoted"
Grüße, 世界','open','2026-11-20 12:30:00','2026-11-20 12:30:00','530644b432b14c13bffaaf446f855a6e',1);
INSERT INTO "remediation_cleanuptask" VALUES(2,'reason 1: it''s "quoted"
Grüße, 世界','done','2026-11-21 12:30:00',NULL,'7114aa54e9554920815321a5f7185c6d',NULL);
CREATE TABLE "remediation_contextevent" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "code" varchar(24) NOT NULL, "message" text NOT NULL, "est_tokens" integer unsigned NULL CHECK ("est_tokens" >= 0), "limit" integer unsigned NULL CHECK ("limit" >= 0), "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "remediation_contextevent" VALUES(1,'CONTEXT_WARNING','message 0: it''s "quoted"
Grüße, 世界',1,1,'2026-11-20 12:30:00','530644b432b14c13bffaaf446f855a6e');
INSERT INTO "remediation_contextevent" VALUES(2,'CONTEXT_OVER_HIT','message 1: it''s "quoted"
Grüße, 世界',NULL,NULL,'2026-11-21 12:30:00','7114aa54e9554920815321a5f7185c6d');
CREATE TABLE "remediation_contextsettings" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "singleton" bool NOT NULL UNIQUE, "config" text NOT NULL CHECK ((JSON_VALID("config") OR "config" IS NULL)));
INSERT INTO "remediation_contextsettings" VALUES(1,0,'[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]');
INSERT INTO "remediation_contextsettings" VALUES(2,1,'[1, "Gr\u00fc\u00dfe, \u4e16\u754c"]');
CREATE TABLE "remediation_preparedrewrite" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "key" varchar(64) NOT NULL, "covers" integer unsigned NOT NULL CHECK ("covers" >= 0), "content" text NULL CHECK ((JSON_VALID("content") OR "content" IS NULL)), "prompts" text DEFAULT '{}' NOT NULL CHECK ((JSON_VALID("prompts") OR "prompts" IS NULL)), "dialog_id" char(32) NOT NULL UNIQUE REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "remediation_preparedrewrite" VALUES(1,'key-0',1,'[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]','[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]','530644b432b14c13bffaaf446f855a6e');
INSERT INTO "remediation_preparedrewrite" VALUES(2,'key-1',2,NULL,'[1, "Gr\u00fc\u00dfe, \u4e16\u754c"]','7114aa54e9554920815321a5f7185c6d');
CREATE TABLE "remediation_proposal" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "kind" varchar(16) NOT NULL, "change" text NOT NULL CHECK ((JSON_VALID("change") OR "change" IS NULL)), "grounds" text NOT NULL, "state" varchar(8) NOT NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "decided_at" datetime NULL, "agent_id" varchar(64) NULL REFERENCES "dialogs_agent" ("id") DEFERRABLE INITIALLY DEFERRED, "decided_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "remediation_proposal" VALUES(1,'limit','[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]','grounds 0: it''s "quoted"
Grüße, 世界','open','2026-11-20 12:30:00','2026-11-20 12:30:00','demo',1);
INSERT INTO "remediation_proposal" VALUES(2,'order','[1, "Gr\u00fc\u00dfe, \u4e16\u754c"]','grounds 1: it''s "quoted"
Grüße, 世界','accepted','2026-11-21 12:30:00',NULL,NULL,NULL);
CREATE TABLE "remediation_remediationrun" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "round_number" integer unsigned NOT NULL CHECK ("round_number" >= 0), "policy" varchar(16) NOT NULL, "reason" varchar(200) NOT NULL, "steps" text NOT NULL CHECK ((JSON_VALID("steps") OR "steps" IS NULL)), "est_before" integer unsigned NOT NULL CHECK ("est_before" >= 0), "est_after" integer unsigned NOT NULL CHECK ("est_after" >= 0), "est_source" varchar(12) NOT NULL, "limit" integer unsigned NULL CHECK ("limit" >= 0), "base_position" integer unsigned NOT NULL CHECK ("base_position" >= 0), "view" text NOT NULL CHECK ((JSON_VALID("view") OR "view" IS NULL)), "removed" text NOT NULL CHECK ((JSON_VALID("removed") OR "removed" IS NULL)), "summary" text NOT NULL, "ledger" text NOT NULL CHECK ((JSON_VALID("ledger") OR "ledger" IS NULL)), "recovered" bool NOT NULL, "coherence" real NULL, "millis" real NOT NULL, "reward" real NULL, "reward_record" text NULL CHECK ((JSON_VALID("reward_record") OR "reward_record" IS NULL)), "undone_at" datetime NULL, "created_at" datetime DEFAULT (STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')) NOT NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, "undone_by_id" integer NULL REFERENCES "auth_user" ("id") DEFERRABLE INITIALLY DEFERRED, "reread_usd" decimal NULL, "saving_usd" decimal NULL, "facts" text NULL CHECK ((JSON_VALID("facts") OR "facts" IS NULL)), "prompts" text DEFAULT '{}' NOT NULL CHECK ((JSON_VALID("prompts") OR "prompts" IS NULL)));
INSERT INTO "remediation_remediationrun" VALUES(1,1,'policy-0','reason-0','[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]',1,1,'est_source-0',1,1,'[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]','[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]','summary 0: it''s "quoted"
Grüße, 世界','[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]',0,0.5,0.5,0.5,'[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]','2026-11-20 12:30:00','2026-11-20 12:30:00','530644b432b14c13bffaaf446f855a6e',1,0.25,0.25,'[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]','[0, "Gr\u00fc\u00dfe, \u4e16\u754c"]');
INSERT INTO "remediation_remediationrun" VALUES(2,2,'policy-1','reason-1','[1, "Gr\u00fc\u00dfe, \u4e16\u754c"]',2,2,'est_source-1',NULL,2,'[1, "Gr\u00fc\u00dfe, \u4e16\u754c"]','[1, "Gr\u00fc\u00dfe, \u4e16\u754c"]','summary 1: it''s "quoted"
Grüße, 世界','[1, "Gr\u00fc\u00dfe, \u4e16\u754c"]',1,NULL,1.5,NULL,NULL,NULL,'2026-11-21 12:30:00','7114aa54e9554920815321a5f7185c6d',NULL,NULL,NULL,NULL,'[1, "Gr\u00fc\u00dfe, \u4e16\u754c"]');
CREATE TABLE "remediation_removedunit" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "unit_id" varchar(64) NOT NULL, "kind" varchar(16) NOT NULL, "role" varchar(12) NOT NULL, "est_tokens" integer unsigned NOT NULL CHECK ("est_tokens" >= 0), "text" text NOT NULL, "dialog_id" char(32) NOT NULL REFERENCES "dialogs_dialog" ("id") DEFERRABLE INITIALLY DEFERRED, "run_id" bigint NOT NULL REFERENCES "remediation_remediationrun" ("id") DEFERRABLE INITIALLY DEFERRED);
INSERT INTO "remediation_removedunit" VALUES(1,'unit_id-0','kind-0','role-0',1,'text 0: it''s "quoted"
Grüße, 世界','530644b432b14c13bffaaf446f855a6e',1);
INSERT INTO "remediation_removedunit" VALUES(2,'unit_id-1','kind-1','role-1',2,'text 1: it''s "quoted"
Grüße, 世界','7114aa54e9554920815321a5f7185c6d',2);
CREATE UNIQUE INDEX "auth_group_permissions_group_id_permission_id_0cd325b0_uniq" ON "auth_group_permissions" ("group_id", "permission_id");
CREATE INDEX "auth_group_permissions_group_id_b120cbf9" ON "auth_group_permissions" ("group_id");
CREATE INDEX "auth_group_permissions_permission_id_84c5c92e" ON "auth_group_permissions" ("permission_id");
CREATE UNIQUE INDEX "auth_user_groups_user_id_group_id_94350c0c_uniq" ON "auth_user_groups" ("user_id", "group_id");
CREATE INDEX "auth_user_groups_user_id_6a12ed8b" ON "auth_user_groups" ("user_id");
CREATE INDEX "auth_user_groups_group_id_97559544" ON "auth_user_groups" ("group_id");
CREATE UNIQUE INDEX "auth_user_user_permissions_user_id_permission_id_14a6b632_uniq" ON "auth_user_user_permissions" ("user_id", "permission_id");
CREATE INDEX "auth_user_user_permissions_user_id_a95ead1b" ON "auth_user_user_permissions" ("user_id");
CREATE INDEX "auth_user_user_permissions_permission_id_1fbb5f2c" ON "auth_user_user_permissions" ("permission_id");
CREATE INDEX "django_admin_log_content_type_id_c4bce8eb" ON "django_admin_log" ("content_type_id");
CREATE INDEX "django_admin_log_user_id_c564eba6" ON "django_admin_log" ("user_id");
CREATE UNIQUE INDEX "django_content_type_app_label_model_76bd3d3b_uniq" ON "django_content_type" ("app_label", "model");
CREATE UNIQUE INDEX "auth_permission_content_type_id_codename_01ab375a_uniq" ON "auth_permission" ("content_type_id", "codename");
CREATE INDEX "auth_permission_content_type_id_2f476e4b" ON "auth_permission" ("content_type_id");
CREATE INDEX "dialogs_artifact_dialog_id_7631366d" ON "dialogs_artifact" ("dialog_id");
CREATE INDEX "dialogs_reminder_dialog_id_04e84eab" ON "dialogs_reminder" ("dialog_id");
CREATE INDEX "dialogs_round_dialog_id_8b3c82c5" ON "dialogs_round" ("dialog_id");
CREATE INDEX "turn_position" ON "dialogs_turn" ("dialog_id", "position");
CREATE UNIQUE INDEX "one_running_generation_per_dialog" ON "dialogs_generation" ("dialog_id") WHERE "outcome" = 'running';
CREATE INDEX "generation_newest" ON "dialogs_generation" ("dialog_id", "id" DESC);
CREATE INDEX "dialogs_client_key_id_6c6cef19" ON "dialogs_client" ("key_id");
CREATE INDEX "client_conversation" ON "dialogs_client" ("key_id", "said");
CREATE INDEX "client_first" ON "dialogs_client" ("key_id", "first");
CREATE INDEX "client_newest" ON "dialogs_client" ("key_id", "newest");
CREATE INDEX "dialogs_apikey_owner_id_16729969" ON "dialogs_apikey" ("owner_id");
CREATE INDEX "dialogs_requestpart_dialog_id_3284d9bd" ON "dialogs_requestpart" ("dialog_id");
CREATE UNIQUE INDEX "imported_once" ON "dialogs_dialog" ("owner_id", "source") WHERE NOT ("source" = '');
CREATE INDEX "dialog_recent" ON "dialogs_dialog" ("owner_id", "active_at" DESC);
CREATE INDEX "dialog_by_state" ON "dialogs_dialog" ("state");
CREATE INDEX "dialog_expiring" ON "dialogs_dialog" ("expires_at") WHERE "expires_at" IS NOT NULL;
CREATE INDEX "dialog_pinned" ON "dialogs_dialog" ("owner_id") WHERE "pinned_at" IS NOT NULL;
CREATE INDEX "dialog_shared" ON "dialogs_dialog" ("group_id") WHERE "group_id" IS NOT NULL;
CREATE INDEX "dialog_linked" ON "dialogs_dialog" ("link") WHERE "link" IS NOT NULL;
CREATE INDEX "dialogs_delivery_person_id_f036b9da" ON "dialogs_delivery" ("person_id");
CREATE INDEX "dialogs_delivery_question_id_f996606c" ON "dialogs_delivery" ("question_id");
CREATE INDEX "deliveries_that_are_due" ON "dialogs_delivery" ("due_at") WHERE "due_at" IS NOT NULL;
CREATE INDEX "dialogs_identity_user_id_315185f9" ON "dialogs_identity" ("user_id");
CREATE UNIQUE INDEX "dialogs_identity_groups_identity_id_group_id_73195f4b_uniq" ON "dialogs_identity_groups" ("identity_id", "group_id");
CREATE INDEX "dialogs_identity_groups_identity_id_e4f16773" ON "dialogs_identity_groups" ("identity_id");
CREATE INDEX "dialogs_identity_groups_group_id_330ccf2e" ON "dialogs_identity_groups" ("group_id");
CREATE INDEX "dialog_in_folder" ON "dialogs_dialog" ("owner_id") WHERE "folder" IS NOT NULL;
CREATE INDEX "dialogs_prompttemplate_owner_id_c234d90d" ON "dialogs_prompttemplate" ("owner_id");
CREATE INDEX "generation_by_key" ON "dialogs_generation" ("key_id", "started_at") WHERE "key_id" IS NOT NULL;
CREATE INDEX "dialogs_pushsubscription_user_id_381011c2" ON "dialogs_pushsubscription" ("user_id");
CREATE INDEX "dialogs_delivery_subscription_id_a24900c1" ON "dialogs_delivery" ("subscription_id");
CREATE INDEX "dialog_newest" ON "dialogs_dialog" ("active_at" DESC);
CREATE INDEX "dialog_oldest" ON "dialogs_dialog" ("created_at", "id");
CREATE INDEX "client_answer" ON "dialogs_client" ("key_id", "answer_digest");
CREATE INDEX "dialogs_sitesettings_pruning_agent_id_362c5ec5" ON "dialogs_sitesettings" ("pruning_agent_id");
CREATE INDEX "dialogs_embeddinguse_key_id_95a5b2db" ON "dialogs_embeddinguse" ("key_id");
CREATE INDEX "dialog_of_agent" ON "dialogs_dialog" ("agent_id");
CREATE INDEX "dialog_branched_off" ON "dialogs_dialog" ("forked_from_id") WHERE "forked_from_id" IS NOT NULL;
CREATE INDEX "turn_of_generation" ON "dialogs_turn" ("generation_id") WHERE "generation_id" IS NOT NULL;
CREATE UNIQUE INDEX "one_open_question_per_dialog" ON "dialogs_question" ("dialog_id") WHERE "state" = 'open';
CREATE INDEX "dialogs_question_dialog_id_2b65d606" ON "dialogs_question" ("dialog_id");
CREATE INDEX "dialogs_question_resolved_by_id_1cf921c8" ON "dialogs_question" ("resolved_by_id");
CREATE INDEX "question_by_state" ON "dialogs_question" ("state", "created_at");
CREATE INDEX "question_newest" ON "dialogs_question" ("created_at", "id");
CREATE INDEX "archive_newest" ON "remediation_removedunit" ("dialog_id", "id" DESC);
CREATE INDEX "remediation_proposal_agent_id_df486835" ON "remediation_proposal" ("agent_id");
CREATE INDEX "remediation_proposal_decided_by_id_4dbfa2de" ON "remediation_proposal" ("decided_by_id");
CREATE INDEX "remediation_removedunit_dialog_id_8da363d7" ON "remediation_removedunit" ("dialog_id");
CREATE INDEX "remediation_removedunit_run_id_1af3c704" ON "remediation_removedunit" ("run_id");
CREATE UNIQUE INDEX "one_open_cleanup_task_per_dialog" ON "remediation_cleanuptask" ("dialog_id") WHERE "state" = 'open';
CREATE INDEX "remediation_cleanuptask_dialog_id_457932c7" ON "remediation_cleanuptask" ("dialog_id");
CREATE INDEX "remediation_cleanuptask_done_by_id_32e78790" ON "remediation_cleanuptask" ("done_by_id");
CREATE INDEX "remediation_contextevent_dialog_id_70f3858d" ON "remediation_contextevent" ("dialog_id");
CREATE INDEX "context_event_recent" ON "remediation_contextevent" ("dialog_id", "code", "created_at" DESC);
CREATE INDEX "remediation_remediationrun_dialog_id_b0f3c0f0" ON "remediation_remediationrun" ("dialog_id");
CREATE INDEX "remediation_remediationrun_undone_by_id_4a2be824" ON "remediation_remediationrun" ("undone_by_id");
CREATE INDEX "remediation_latest" ON "remediation_remediationrun" ("dialog_id", "round_number", "id" DESC);
CREATE INDEX "django_session_expire_date_a5c62663" ON "django_session" ("expire_date");
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('django_migrations',72);
INSERT INTO "sqlite_sequence" VALUES('django_admin_log',0);
INSERT INTO "sqlite_sequence" VALUES('django_content_type',39);
INSERT INTO "sqlite_sequence" VALUES('auth_permission',161);
INSERT INTO "sqlite_sequence" VALUES('auth_group',2);
INSERT INTO "sqlite_sequence" VALUES('auth_user',2);
INSERT INTO "sqlite_sequence" VALUES('dialogs_round',4);
INSERT INTO "sqlite_sequence" VALUES('dialogs_turn',11);
INSERT INTO "sqlite_sequence" VALUES('dialogs_event',4);
INSERT INTO "sqlite_sequence" VALUES('dialogs_generation',5);
INSERT INTO "sqlite_sequence" VALUES('dialogs_apikey',1);
INSERT INTO "sqlite_sequence" VALUES('dialogs_prompttemplate',2);
INSERT INTO "sqlite_sequence" VALUES('dialogs_sitesettings',2);
INSERT INTO "sqlite_sequence" VALUES('dialogs_personsettings',2);
INSERT INTO "sqlite_sequence" VALUES('dialogs_calltotals',2);
INSERT INTO "sqlite_sequence" VALUES('dialogs_embeddinguse',2);
INSERT INTO "sqlite_sequence" VALUES('health_healthsnapshot',5);
INSERT INTO "sqlite_sequence" VALUES('remediation_remediationrun',2);
INSERT INTO "sqlite_sequence" VALUES('auth_group_permissions',2);
INSERT INTO "sqlite_sequence" VALUES('auth_user_groups',2);
INSERT INTO "sqlite_sequence" VALUES('remediation_removedunit',2);
INSERT INTO "sqlite_sequence" VALUES('remediation_preparedrewrite',2);
INSERT INTO "sqlite_sequence" VALUES('remediation_contextevent',2);
INSERT INTO "sqlite_sequence" VALUES('remediation_cleanuptask',2);
INSERT INTO "sqlite_sequence" VALUES('remediation_proposal',2);
INSERT INTO "sqlite_sequence" VALUES('remediation_contextsettings',2);
INSERT INTO "sqlite_sequence" VALUES('dialogs_forcingrefusal',2);
INSERT INTO "sqlite_sequence" VALUES('dialogs_reminder',3);
INSERT INTO "sqlite_sequence" VALUES('dialogs_pushsubscription',2);
INSERT INTO "sqlite_sequence" VALUES('dialogs_delivery',2);
INSERT INTO "sqlite_sequence" VALUES('dialogs_identity_groups',2);
INSERT INTO "sqlite_sequence" VALUES('dialogs_identity',2);
INSERT INTO "sqlite_sequence" VALUES('dialogs_recallchoice',2);
INSERT INTO "sqlite_sequence" VALUES('dialogs_artifact',2);
INSERT INTO "sqlite_sequence" VALUES('dialogs_attachment',2);
COMMIT;
