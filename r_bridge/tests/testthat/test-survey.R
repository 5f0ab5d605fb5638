test_that("files are read with names, labels, rules and missing cells", {
  needs_python()
  first <- tempfile(fileext = ".csv")
  second <- tempfile(fileext = ".csv")
  utils::write.csv(data.frame(SEQN = c(11, 12, 13, 14), AGE = c(30, 15, 40, 99)), first, row.names = FALSE)
  utils::write.csv(
    data.frame(SEQN = c(14, 13, 12, 11), BMI = c(20.123, NA, 22, 23), SITE = c("a", "b", NA, "a")), second,
    row.names = FALSE, na = ""
  )
  data <- dp_read_survey(c(first, second),
    on = "SEQN", columns = c(Age = "AGE", "BMI", "SITE"), missing_codes = list(AGE = 99), where = "AGE >= 20",
    round_to = 1
  )
  expect_named(data, c("SEQN", "Age", "BMI", "SITE"))
  expect_equal(data$SEQN, c(11, 13))
  expect_equal(data$BMI, c(23, NA))
  expect_equal(data$SITE, c("a", "b"))
  expect_equal(attr(data, "dp_filters"), "AGE >= 20")
  expect_equal(attr(data, "dp_round_to"), 1)
  expect_error(dp_read_survey(first, columns = "AEG"), class = "UnknownNameError")
  expect_error(dp_read_survey(tempfile(fileext = ".xpt")), class = "MissingFileError")
})

test_that("declared rules and labels go into the release", {
  needs_python()
  set.seed(1)
  file <- tempfile(fileext = ".csv")
  data <- complete_table()
  data$SEQN <- seq_len(nrow(data)) + 100
  utils::write.csv(data, file, row.names = FALSE)
  survey <- dp_read_survey(file, on = "SEQN", where = "Kcal > 0", round_to = 3)
  attr(survey$Kcal, "label") <- "Energy (kcal)"
  release <- suppressWarnings(dp_release(survey, 1, id = "SEQN"))
  expect_match(release$statement, "Kcal > 0", fixed = TRUE)
  expect_match(release$statement, "rounded to 3 decimals")
  expect_match(release$json, "Energy (kcal)", fixed = TRUE)
  expect_equal(release$variables, c("Kcal", "Grain", "Sugar"))
})
